import { Gauge, type Registry } from "prom-client";
import { validityOfPem } from "../config/certificate-validity.ts";

/** The listener that serves the certificate. */
type CertificateUse = "apiServer" | "kubelet" | "ingress" | "peers";

/** Metrics for operators' alerts besides traffic: shutdown and expiring certificates. */
export class OperationsMetrics {
  readonly #expiry: Gauge<"listener">;
  readonly #upstreamExpiry: Gauge<"use" | "certificate">;
  readonly #secretExpiry: Gauge<"namespace" | "secret">;
  /** The observer's names for certificates from Secrets. */
  #secrets: ReadonlySet<string> = new Set();
  #isDraining = () => false;
  #onCertificate: CertificateObserver = () => {};

  constructor(registry: Registry) {
    const registers = [registry];
    const isDraining = () => this.#isDraining();
    new Gauge({
      name: "sluice_draining",
      help: "1 during a shutdown: running sessions may finish, new ones are refused.",
      aggregator: "max",
      registers,
      collect() {
        this.set(isDraining() ? 1 : 0);
      },
    });
    this.#expiry = new Gauge({
      name: "sluice_certificate_expiry_timestamp_seconds",
      help: "Expiry of a listener's serving certificate, in seconds since 1970.",
      labelNames: ["listener"],
      // Workers may read a new certificate one after another.
      aggregator: "min",
      registers,
    });
    this.#upstreamExpiry = new Gauge({
      name: "sluice_upstream_certificate_expiry_timestamp_seconds",
      help: "Expiry of certificates for an upstream, in seconds since 1970: the client certificate, or the authority that expires last.",
      labelNames: ["use", "certificate"],
      aggregator: "min",
      registers,
    });
    this.#secretExpiry = new Gauge({
      name: "sluice_ingress_certificate_expiry_timestamp_seconds",
      help: "Expiry of the certificate in a Secret that Ingresses name, in seconds since 1970.",
      labelNames: ["namespace", "secret"],
      aggregator: "min",
      registers,
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
    this.#expiry.set({ listener }, expiresAtMs / 1_000);
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
    this.#secretExpiry.reset();
    for (const { namespace, secret, expiresAtMs, lifetimeMs } of certificates) {
      const name = `the certificate of the Secret ${namespace}/${secret}`;
      names.add(name);
      this.#secretExpiry.set({ namespace, secret }, expiresAtMs / 1_000);
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
    this.#upstreamExpiry.set({ use, certificate }, expiresAtMs / 1_000);
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
  readonly #isSuccessful: Gauge;
  readonly #succeededAt: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#isSuccessful = new Gauge({
      name: "sluice_config_last_reload_successful",
      help: "1 if the last reading of the configuration, at the start or by SIGHUP, succeeded.",
      registers,
    });
    this.#succeededAt = new Gauge({
      name: "sluice_config_last_reload_success_timestamp_seconds",
      help: "Time of the last successful reading of the configuration, in seconds since 1970.",
      registers,
    });
    this.configurationRead(true);
  }

  configurationRead(isRight: boolean): void {
    this.#isSuccessful.set(isRight ? 1 : 0);
    if (isRight) this.#succeededAt.setToCurrentTime();
  }
}
