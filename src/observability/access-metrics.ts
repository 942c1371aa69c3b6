import type { Registry } from "prom-client";
import { counter, gauge, type MetricsOf, register } from "./metric-table.ts";

type ConnectionRefusal =
  | "too-many-of-address"
  | "origin"
  | "proxy-header-untrusted"
  | "proxy-header-missing"
  | "proxy-header-malformed"
  | "proxy-header-late";

const REAUTHORIZATIONS = ["allowed", "undecided", "refused", "expired"] as const;
const BACKENDS = ["log", "webhook"] as const;

const ACCESS_FAMILIES = {
  attempts: counter(
    "sluice_authentication_attempts_total",
    "Requests by result of authentication: authenticated, anonymous, no-credentials, or the fault of the credentials.",
    ["result"],
  ),
  auditEvents: counter(
    "sluice_audit_events_total",
    "Audit events by result: stored, or lost because too many waited.",
    { backend: BACKENDS, result: ["stored", "lost"] },
  ),
  auditFailures: counter(
    "sluice_audit_failures_total",
    "Failed deliveries of audit events; each is retried.",
    { backend: BACKENDS },
  ),
  refusedConnections: counter(
    "sluice_connections_refused_total",
    "Connections and upgrades refused before authentication, by reason.",
    ["reason"],
  ),
  reauthorizations: counter(
    "sluice_session_reauthorizations_total",
    "Running sessions that were authorized again: allowed, undecided (the authorizer did not answer; the session goes on), refused, or their user's credentials had expired.",
    { result: REAUTHORIZATIONS },
  ),
  viewers: gauge("sluice_session_viewers", "Viewers of running sessions of this process, joiners included."),
  joiners: gauge(
    "sluice_session_joiners",
    "Joiners of running sessions of this process, which can type in them.",
  ),
};

/** Metrics of authentication, authorization, policy and audit. Label values are closed lists. */
export class AccessMetrics {
  readonly #metrics: MetricsOf<typeof ACCESS_FAMILIES>;

  #viewers: () => number = () => 0;
  #joiners: () => number = () => 0;

  constructor(registry: Registry) {
    this.#metrics = register(registry, ACCESS_FAMILIES, {
      viewers: (metric) => metric.set(this.#viewers()),
      joiners: (metric) => metric.set(this.#joiners()),
    });
  }

  authenticationAttempted(result: string): void {
    this.#metrics.attempts.inc({ result });
  }

  auditEvents(backend: "log" | "webhook", result: "stored" | "lost", count: number): void {
    this.#metrics.auditEvents.inc({ backend, result }, count);
  }

  auditFailed(backend: "log" | "webhook"): void {
    this.#metrics.auditFailures.inc({ backend });
  }

  /** Called at every scrape. */
  observeViewers(viewers: () => number, joiners: () => number): void {
    this.#viewers = viewers;
    this.#joiners = joiners;
  }

  reauthorized(result: (typeof REAUTHORIZATIONS)[number]): void {
    this.#metrics.reauthorizations.inc({ result });
  }

  connectionRefused(reason: ConnectionRefusal): void {
    this.#metrics.refusedConnections.inc({ reason });
  }
}
