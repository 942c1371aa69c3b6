import { Counter, type Registry } from "prom-client";

/** What is counted of the decisions about who may come in. */
export class AccessMetrics {
  readonly #attempts: Counter<"result">;

  constructor(registry: Registry) {
    this.#attempts = new Counter({
      name: "sluice_authentication_attempts_total",
      help: "Requests by how their authentication ended: authenticated, anonymous, no-credentials, or what was wrong with the credentials.",
      labelNames: ["result"],
      registers: [registry],
    });
  }

  /** `result` is one of a closed list; nothing that a client sends becomes a label. */
  authenticationAttempted(result: string): void {
    this.#attempts.inc({ result });
  }
}
