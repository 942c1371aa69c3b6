import { type CertificateValidity, soonMs } from "../config/certificate-validity.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import { configurationWarnings } from "../config/configuration-warnings.ts";
import type { Component, Health } from "../lifecycle/component.ts";
import { UpstreamTlsFiles } from "../net/upstream-tls-files.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";

const CHECK_MS = 3_600_000;
const DAY_MS = 86_400_000;

interface BuiltCertificates extends Component {
  /** Certificates from files, for every component that dials with them. */
  readonly upstreams: UpstreamTlsFiles;
}

/**
 * Tracks every certificate of this process; build it before the components that read any.
 * `isFirst`: this process alone logs expiry, for all processes.
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

/** Readiness repeats the configuration's warnings, which the log showed at the start. */
export function noteWarnings(configuration: GatewayConfiguration): Component {
  const note = configurationWarnings(configuration).join("; ");
  return { health: () => (note === "" ? undefined : { note }), stop: () => {} };
}

interface FollowedCertificate extends CertificateValidity {
  /** The threshold that was last logged. */
  loggedMs: number;
}

interface CertificateExpiryOptions {
  readonly logger: Pick<Logger, "warn" | "error">;
  /** Milliseconds since 1970; for tests. */
  readonly nowMs?: () => number;
}

/**
 * Logs certificates 30 days and 1 day before they expire, or at a third and a tenth of shorter
 * lifetimes, and again once they have expired. For operators without an alert on the metrics.
 */
export class CertificateExpiry implements Component {
  readonly #logger: CertificateExpiryOptions["logger"];
  readonly #nowMs: () => number;
  readonly #followed = new Map<string, FollowedCertificate>();
  readonly #timer: NodeJS.Timeout;

  constructor({ logger, nowMs = Date.now }: CertificateExpiryOptions) {
    this.#logger = logger;
    this.#nowMs = nowMs;
    this.#timer = setInterval(() => this.check(), CHECK_MS).unref();
  }

  /**
   * Replaces the certificate with that name. If the new one expires at the same time, its warnings
   * are not repeated.
   */
  follow(name: string, expiresAtMs: number, lifetimeMs: number = Number.POSITIVE_INFINITY): void {
    if (this.#followed.get(name)?.expiresAtMs === expiresAtMs) return;
    const certificate = { expiresAtMs, lifetimeMs, loggedMs: Number.POSITIVE_INFINITY };
    this.#followed.set(name, certificate);
    this.#judge(name, certificate, this.#nowMs());
  }

  forget(name: string): void {
    this.#followed.delete(name);
  }

  check(): void {
    const nowMs = this.#nowMs();
    for (const [name, certificate] of this.#followed) this.#judge(name, certificate, nowMs);
  }

  #judge(name: string, certificate: FollowedCertificate, nowMs: number): void {
    const leftMs = certificate.expiresAtMs - nowMs;
    const thresholdsMs = [0, verySoonMs(certificate), soonMs(certificate)];
    const reached = thresholdsMs.find((threshold) => leftMs <= threshold);
    if (reached === undefined || reached >= certificate.loggedMs) return;
    certificate.loggedMs = reached;
    const expires = new Date(certificate.expiresAtMs).toISOString();
    if (reached === 0) this.#logger.error({ certificate: name, expires }, "a certificate has expired");
    else this.#logger.warn({ certificate: name, expires }, "a certificate expires soon");
  }

  /**
   * Names the certificates that have expired, or expire within a day or a tenth of their lifetime.
   */
  health(): Health {
    const nowMs = this.#nowMs();
    const near = [...this.#followed].filter(
      ([, certificate]) => certificate.expiresAtMs - nowMs <= verySoonMs(certificate),
    );
    if (near.length === 0) return undefined;
    const texts = near.map(
      ([name, { expiresAtMs }]) =>
        `${name} ${expiresAtMs <= nowMs ? "expired" : "expires"} ${new Date(expiresAtMs).toISOString()}`,
    );
    return { note: texts.join("; ") };
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** How long before expiry a certificate is urgent: a day, or a tenth of a shorter lifetime. */
function verySoonMs({ lifetimeMs }: Pick<CertificateValidity, "lifetimeMs">): number {
  return Math.min(DAY_MS, lifetimeMs / 10);
}
