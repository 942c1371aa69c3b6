import type { SessionRunContext } from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { SessionOwner } from "../../sessions/lifecycle.ts";
import type { SessionReport } from "../../sessions/session.ts";
import { PROXIED, type SessionInfo } from "../../sessions/session-info.ts";
import { annotateEnd } from "../../sessions/session-record.ts";
import type { AdmittedProxied } from "./admit-proxied.ts";

/**
 * Metrics and logs for one session through a proxy subresource, like those of other sessions except
 * for how the payload ends.
 */
export class ProxiedRecord implements SessionOwner {
  readonly info: SessionInfo;
  readonly onOver: () => void;
  readonly #incoming: IncomingStreaming;
  readonly #gateway: SessionRunContext;
  readonly #startedMs: number;

  constructor(
    { target, user }: AdmittedProxied,
    incoming: IncomingStreaming,
    gateway: SessionRunContext,
    onOver: () => void,
  ) {
    const { name, requestedBy } = user;
    const asked = requestedBy === undefined ? {} : { requestedBy };
    const id = gateway.sessions.newId();
    this.info = { ...target, id, user: name, ...asked, plan: PROXIED, startedAt: new Date() };
    this.onOver = onOver;
    this.#incoming = incoming;
    this.#gateway = gateway;
    this.#startedMs = gateway.clock.now();
  }

  /** The API server has switched protocols. */
  start(): void {
    const { metrics, logger } = this.#gateway;
    const { trail } = this.#incoming;
    metrics.streamingStarted(this.info.subresource, PROXIED, this.#seconds);
    trail?.annotate("sluice.dev/session", this.info.id);
    trail?.annotate("sluice.dev/plan", PROXIED.kind);
    trail?.started({ code: 101 });
    logger.info({ session: this.#logFields() }, "session started");
  }

  refused(code: number): void {
    this.#gateway.metrics.streamingRefused(this.info.subresource, PROXIED, code);
  }

  onReport(report: SessionReport): void {
    const { metrics, logger } = this.#gateway;
    annotateEnd(this.#incoming.trail, report);
    const durationSeconds = this.#seconds;
    metrics.streamingEnded(this.info.subresource, PROXIED, report, durationSeconds);
    const { message: reason, ...end } = report;
    logger.info({ session: this.#logFields(), ...end, reason, durationSeconds }, "session ended");
  }

  get #seconds(): number {
    return (this.#gateway.clock.now() - this.#startedMs) / 1_000;
  }

  #logFields(): Record<string, unknown> {
    const { plan, startedAt: _, ...fields } = this.info;
    return { ...fields, remoteAddress: this.#incoming.remoteAddress, plan: plan.kind, reason: plan.reason };
  }
}
