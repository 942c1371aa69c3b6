import { FAULT_PLACES } from "@sluice/client/internal/observability/faults";
import type { Counter, Registry } from "prom-client";
import { validityOfPem } from "../config/certificate-validity.ts";
import { counter, gauge, histogram, type MetricsOf, register } from "./metric-table.ts";

/** Workers may read a new certificate one after another. */
const OF_CERTIFICATES = "min";

const OPERATIONS_FAMILIES = {
  draining: gauge(
    "sluice_draining",
    "1 during a shutdown: running sessions may finish, new ones are refused.",
    [],
    "max",
  ),
  expiry: gauge(
    "sluice_certificate_expiry_timestamp_seconds",
    "Expiry of a listener's serving certificate, in seconds since 1970.",
    ["listener"],
    OF_CERTIFICATES,
  ),
  upstreamExpiry: gauge(
    "sluice_upstream_certificate_expiry_timestamp_seconds",
    "Expiry of certificates for an upstream, in seconds since 1970: the client certificate, or the authority that expires last.",
    ["use", "certificate"],
    OF_CERTIFICATES,
  ),
  secretExpiry: gauge(
    "sluice_ingress_certificate_expiry_timestamp_seconds",
    "Expiry of the certificate in a Secret that Ingresses name, in seconds since 1970.",
    ["namespace", "secret"],
    OF_CERTIFICATES,
  ),
};

const RELOAD_FAMILIES = {
  isSuccessful: gauge(
    "sluice_config_last_reload_successful",
    "1 if the last reading of the configuration, at the start or by SIGHUP, succeeded.",
  ),
  succeededAt: gauge(
    "sluice_config_last_reload_success_timestamp_seconds",
    "Time of the last successful reading of the configuration, in seconds since 1970.",
  ),
};

const FAULT_FAMILIES = {
  internalErrors: counter(
    "sluice_internal_errors_total",
    "Unexpected exceptions by the place that contained them; each ended one request, exchange, session or probe. The log has their stacks.",
    { where: FAULT_PLACES },
  ),
};

const TRACE_FAMILIES = {
  spans: counter(
    "sluice_trace_spans_total",
    "Sampled spans by result: ended, exported to the collector, or failed to export.",
    ["result"],
  ),
};

const BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

const QUOTA_FAMILIES = {
  up: gauge(
    "sluice_quota_store_up",
    "1 if the quota store answers; 0: it is unreachable, and quotaStore.onFailure decides.",
  ),
  decisions: counter(
    "sluice_quota_decisions_total",
    "Quota decisions: granted or refused by the store; allowed or denied while it was unreachable.",
    { result: ["granted", "refused", "allowed", "denied"] },
  ),
  calls: histogram(
    "sluice_quota_store_call_duration_seconds",
    "Duration of calls to the quota store, failed ones included.",
    [],
    BUCKETS_SECONDS,
  ),
};

/** The listener that serves the certificate. */
type CertificateUse = "apiServer" | "kubelet" | "ingress" | "peers";

/** Metrics for operators' alerts besides traffic: shutdown and expiring certificates. */
export class OperationsMetrics {
  readonly #metrics: MetricsOf<typeof OPERATIONS_FAMILIES>;
  /** By the observer's names for certificates from Secrets. */
  #secrets: ReadonlyMap<string, { readonly namespace: string; readonly secret: string }> = new Map();
  #isDraining = () => false;
  #onCertificate: CertificateObserver = () => {};

  constructor(registry: Registry) {
    this.#metrics = register(registry, OPERATIONS_FAMILIES, {
      draining: (metric) => metric.set(this.#isDraining() ? 1 : 0),
    });
  }

  /** Calls the observer for each new certificate, which replaces the one with the same name. */
  observeCertificates(observer: CertificateObserver): void {
    this.#onCertificate = observer;
  }

  /** Called at every scrape. */
  observeDraining(isDraining: () => boolean): void {
    this.#isDraining = isDraining;
  }

  /** `pem` is the chain that the listener now serves; its first certificate counts. */
  certificateServed(listener: CertificateUse, pem: string): void {
    const { expiresAtMs, lifetimeMs } = validityOfPem(pem, "chain");
    this.#metrics.expiry.set({ listener }, expiresAtMs / 1_000);
    this.#onCertificate(`the certificate of the listener ${listener}`, expiresAtMs, lifetimeMs);
  }

  /** Expects all certificates that Ingresses name now; each gets a series. Yields between steps. */
  *secretCertificatesServed(
    certificates: readonly {
      readonly namespace: string;
      readonly secret: string;
      readonly expiresAtMs: number;
      readonly lifetimeMs: number;
    }[],
  ): Generator<void, void> {
    const secrets = new Map<string, { readonly namespace: string; readonly secret: string }>();
    for (const { namespace, secret, expiresAtMs, lifetimeMs } of certificates) {
      const name = `the certificate of the Secret ${namespace}/${secret}`;
      secrets.set(name, { namespace, secret });
      this.#metrics.secretExpiry.set({ namespace, secret }, expiresAtMs / 1_000);
      this.#onCertificate(name, expiresAtMs, lifetimeMs);
      yield;
    }
    const before = this.#secrets;
    this.#secrets = secrets;
    for (const [name, labels] of before) {
      if (secrets.has(name)) continue;
      this.#metrics.secretExpiry.remove({ ...labels });
      this.#onCertificate(name, undefined);
      yield;
    }
  }

  /**
   * `pem` is either our chain, whose first certificate counts, or a bundle of authorities, whose
   * last one to expire counts.
   */
  upstreamCertificateRead(use: string, certificate: "client" | "authority", pem: string): void {
    const { expiresAtMs, lifetimeMs } = validityOfPem(
      pem,
      certificate === "client" ? "chain" : "authorities",
    );
    this.#metrics.upstreamExpiry.set({ use, certificate }, expiresAtMs / 1_000);
    const what = certificate === "client" ? "client certificate" : "last certificate authority";
    this.#onCertificate(`the ${what} for ${use}`, expiresAtMs, lifetimeMs);
  }
}

/**
 * `name` is for people. `expiresAtMs` is milliseconds since 1970; undefined removes the
 * certificate.
 */
type CertificateObserver = (name: string, expiresAtMs: number | undefined, lifetimeMs?: number) => void;

/** Metrics of the last configuration reload, in the process that reads the file. */
export class ReloadMetrics {
  readonly #metrics: MetricsOf<typeof RELOAD_FAMILIES>;

  constructor(registry: Registry) {
    this.#metrics = register(registry, RELOAD_FAMILIES);
    this.configurationRead(true);
  }

  configurationRead(isRight: boolean): void {
    this.#metrics.isSuccessful.set(isRight ? 1 : 0);
    if (isRight) this.#metrics.succeededAt.setToCurrentTime();
  }
}

/** Counts a process's faults. */
export function countFaults(registry: Registry): Counter<"where"> {
  return register(registry, FAULT_FAMILIES).internalErrors;
}

/**
 * Metrics of OpenTelemetry spans. An ended span that was neither exported nor failed still waits,
 * or was dropped from a full queue.
 */
export class TraceMetrics {
  readonly #metrics: MetricsOf<typeof TRACE_FAMILIES>;

  constructor(registry: Registry) {
    this.#metrics = register(registry, TRACE_FAMILIES);
  }

  spans(result: "ended" | "exported" | "failed", count: number): void {
    this.#metrics.spans.inc({ result }, count);
  }
}

/** The quota store's metrics, in the process that counts for this replica. */
export class QuotaMetrics {
  readonly #metrics: MetricsOf<typeof QUOTA_FAMILIES>;

  constructor(registry: Registry, isUp: () => boolean) {
    this.#metrics = register(registry, QUOTA_FAMILIES, { up: (metric) => metric.set(isUp() ? 1 : 0) });
  }

  decided(result: "granted" | "refused" | "allowed" | "denied"): void {
    this.#metrics.decisions.inc({ result });
  }

  called(seconds: number): void {
    this.#metrics.calls.observe(seconds);
  }
}
