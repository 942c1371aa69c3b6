import type { Registry } from "prom-client";
import { validityOfPem } from "../config/certificate-validity.ts";
import { gauge, type MetricsOf, register } from "./metric-table.ts";

/** Workers may read a new certificate one after another. */
const OF_CERTIFICATES = "min";

export const OPERATIONS_FAMILIES = {
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

export const RELOAD_FAMILIES = {
  isSuccessful: gauge(
    "sluice_config_last_reload_successful",
    "1 if the last reading of the configuration, at the start or by SIGHUP, succeeded.",
  ),
  succeededAt: gauge(
    "sluice_config_last_reload_success_timestamp_seconds",
    "Time of the last successful reading of the configuration, in seconds since 1970.",
  ),
};

/** The listener that serves the certificate. */
type CertificateUse = "apiServer" | "kubelet" | "ingress" | "peers";

/** Metrics for operators' alerts besides traffic: shutdown and expiring certificates. */
export class OperationsMetrics {
  readonly #metrics: MetricsOf<typeof OPERATIONS_FAMILIES>;
  /** The observer's names for certificates from Secrets. */
  #secrets: ReadonlySet<string> = new Set();
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

  /** Expects all certificates that Ingresses name now; each gets a series. */
  secretCertificatesServed(
    certificates: readonly {
      readonly namespace: string;
      readonly secret: string;
      readonly expiresAtMs: number;
      readonly lifetimeMs: number;
    }[],
  ): void {
    const names = new Set<string>();
    this.#metrics.secretExpiry.reset();
    for (const { namespace, secret, expiresAtMs, lifetimeMs } of certificates) {
      const name = `the certificate of the Secret ${namespace}/${secret}`;
      names.add(name);
      this.#metrics.secretExpiry.set({ namespace, secret }, expiresAtMs / 1_000);
      this.#onCertificate(name, expiresAtMs, lifetimeMs);
    }
    for (const name of this.#secrets) if (!names.has(name)) this.#onCertificate(name, undefined);
    this.#secrets = names;
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
