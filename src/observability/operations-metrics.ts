import { X509Certificate } from "node:crypto";
import { Gauge, type Registry } from "prom-client";

/** Whose certificate it is. */
export type CertificateUse = "apiServer" | "kubelet" | "ingress" | "peers";

/** What operators alert on besides traffic: shutdown and certificates that expire. */
export class OperationsMetrics {
  readonly #expiry: Gauge<"listener">;
  #isDraining = () => false;

  constructor(registry: Registry) {
    const registers = [registry];
    const isDraining = () => this.#isDraining();
    new Gauge({
      name: "sluice_draining",
      help: "1 from the beginning of a shutdown: sessions that run may finish, new ones are refused.",
      aggregator: "max",
      registers,
      collect() {
        this.set(isDraining() ? 1 : 0);
      },
    });
    this.#expiry = new Gauge({
      name: "sluice_certificate_expiry_timestamp_seconds",
      help: "When the certificate expires that a listener serves, in seconds since 1970.",
      labelNames: ["listener"],
      // Workers may read a new certificate one after the other.
      aggregator: "min",
      registers,
    });
  }

  /** Called at every scrape. */
  observeDraining(isDraining: () => boolean): void {
    this.#isDraining = isDraining;
  }

  /** `pem`: the chain that the listener serves from now on; its first certificate counts. */
  certificateServed(listener: CertificateUse, pem: string): void {
    this.#expiry.set({ listener }, Date.parse(new X509Certificate(pem).validTo) / 1_000);
  }
}

/** How the configuration was read last, in the process that reads it. */
export class ReloadMetrics {
  readonly #isSuccessful: Gauge;
  readonly #succeededAt: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#isSuccessful = new Gauge({
      name: "sluice_config_last_reload_successful",
      help: "Whether the configuration was right when it was read last, at the start or by SIGHUP.",
      registers,
    });
    this.#succeededAt = new Gauge({
      name: "sluice_config_last_reload_success_timestamp_seconds",
      help: "When a right configuration was read last, in seconds since 1970.",
      registers,
    });
    this.configurationRead(true);
  }

  configurationRead(isRight: boolean): void {
    this.#isSuccessful.set(isRight ? 1 : 0);
    if (isRight) this.#succeededAt.setToCurrentTime();
  }
}
