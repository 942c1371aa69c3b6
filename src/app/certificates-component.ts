import type { GatewayConfiguration } from "../config/configuration.ts";
import { configurationWarnings } from "../config/configuration-warnings.ts";
import type { Component } from "../lifecycle/component.ts";
import { CertificateExpiry } from "../net/certificate-expiry.ts";
import { UpstreamTlsFiles } from "../net/upstream-tls-files.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";

interface BuiltCertificates extends Component {
  /** Certificates from files, for every component that dials with them. */
  readonly upstreams: UpstreamTlsFiles;
}

/**
 * Tracks every certificate of this process; build it before the components that read any. `isFirst`:
 * of several processes, only this one logs expiry.
 */
export function buildCertificates(metrics: Metrics, logger: Logger, isFirst = true): BuiltCertificates {
  const { operations } = metrics;
  const expiry = new CertificateExpiry({ logger });
  if (isFirst) {
    operations.observeCertificates((name, expiresAtMs, lifetimeMs) => {
      if (expiresAtMs === undefined) expiry.forget(name);
      else expiry.follow(name, expiresAtMs, lifetimeMs);
    });
  }
  const upstreams = new UpstreamTlsFiles({
    logger,
    onRead: (use, certificate, pem) => operations.upstreamCertificateRead(use, certificate, pem),
  });
  return {
    upstreams,
    health: () => expiry.health(),
    reload: () => upstreams.reload(),
    stop: () => {
      upstreams.stop();
      expiry.stop();
    },
  };
}

/** Readiness repeats the warnings that were logged at the start. */
export function noteWarnings(configuration: GatewayConfiguration): Component {
  const note = configurationWarnings(configuration).join("; ");
  return { health: () => (note === "" ? undefined : { note }), stop: () => {} };
}
