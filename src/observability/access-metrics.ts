import { Counter, type Registry } from "prom-client";

type ConnectionRefusal =
  | "too-many-of-address"
  | "origin"
  | "proxy-header-untrusted"
  | "proxy-header-missing"
  | "proxy-header-malformed"
  | "proxy-header-late";

/** Metrics of authentication, authorization, policy and audit. Label values are closed lists. */
export class AccessMetrics {
  readonly #attempts: Counter<"result">;
  readonly #auditEvents: Counter<"backend" | "result">;
  readonly #auditFailures: Counter<"backend">;
  readonly #refusedConnections: Counter<"reason">;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#attempts = new Counter({
      name: "sluice_authentication_attempts_total",
      help: "Requests by result of authentication: authenticated, anonymous, no-credentials, or the fault of the credentials.",
      labelNames: ["result"],
      registers,
    });
    this.#auditEvents = new Counter({
      name: "sluice_audit_events_total",
      help: "Audit events by result: stored, or lost because too many waited.",
      labelNames: ["backend", "result"],
      registers,
    });
    this.#auditFailures = new Counter({
      name: "sluice_audit_failures_total",
      help: "Failed deliveries of audit events; each is retried.",
      labelNames: ["backend"],
      registers,
    });
    // Starts at 0, so that rates and alerts see the first lost event.
    for (const backend of ["log", "webhook"] as const) {
      this.#auditFailures.inc({ backend }, 0);
      for (const result of ["stored", "lost"]) this.#auditEvents.inc({ backend, result }, 0);
    }
    this.#refusedConnections = new Counter({
      name: "sluice_connections_refused_total",
      help: "Connections and upgrades refused before authentication, by reason.",
      labelNames: ["reason"],
      registers,
    });
  }

  authenticationAttempted(result: string): void {
    this.#attempts.inc({ result });
  }

  auditEvents(backend: "log" | "webhook", result: "stored" | "lost", count: number): void {
    this.#auditEvents.inc({ backend, result }, count);
  }

  auditFailed(backend: "log" | "webhook"): void {
    this.#auditFailures.inc({ backend });
  }

  connectionRefused(reason: ConnectionRefusal): void {
    this.#refusedConnections.inc({ reason });
  }
}
