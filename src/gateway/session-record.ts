import { randomUUID } from "node:crypto";
import { StatusError } from "../api/status.ts";
import type { SessionContext, SessionReport, StreamingSession } from "../streaming/session.ts";
import { UpstreamError } from "../upstream/upstream-error.ts";
import type { GatewayContext } from "./context.ts";
import type { PreparedStreaming } from "./prepare-streaming.ts";
import type { SessionInfo } from "./sessions.ts";

/**
 * What operators see of one session, from the decision to its end: its place among the admitted ones, metrics, one log
 * line when it starts and one when it ends. No command line, header or payload is ever recorded.
 */
export class SessionRecord {
  readonly #prepared: PreparedStreaming;
  readonly #gateway: GatewayContext;
  readonly #info: SessionInfo;
  readonly #startedMs: number;
  #giveBack: (() => void) | undefined;
  #isOver = false;

  constructor(prepared: PreparedStreaming, startedMs: number, gateway: GatewayContext) {
    const { request, target, user, plan } = prepared;
    this.#prepared = prepared;
    this.#gateway = gateway;
    this.#startedMs = startedMs;
    this.#info = {
      id: randomUUID(),
      subresource: request.subresource,
      namespace: request.namespace,
      pod: request.pod,
      node: target.node.name,
      user: user.name,
      plan,
      startedAt: new Date(),
    };
    gateway.metrics.streamingRouted(request.subresource, plan, request.offer.transport);
  }

  /** Takes a place; throws a StatusError 429 or 503 when there is none. */
  admit(): void {
    this.#giveBack = this.#gateway.sessions.admit();
  }

  /** The node refused; the client has its answer. */
  refused(status: number): void {
    this.#notStarted(status, "the node refused the session");
  }

  /** The session never came to be. */
  failed(error: unknown): void {
    const code = error instanceof StatusError ? error.code : 500;
    const hasLeft = error instanceof UpstreamError && error.code === "aborted";
    this.#notStarted(code, hasLeft ? "the client left" : error instanceof Error ? error.message : "unknown");
  }

  /** Both upgrades are done: from here on the session's report is the last word. */
  start(begin: (context: SessionContext) => StreamingSession): void {
    const { clock, timeouts, metrics, sessions, logger } = this.#gateway;
    const { subresource, plan } = this.#info;
    metrics.streamingStarted(subresource, plan, (clock.now() - this.#startedMs) / 1_000);
    const context: SessionContext = {
      clock,
      lingerTimes: timeouts,
      timeouts,
      onOver: (report) => this.#over(report),
    };
    const session = begin(context);
    // A session of a few bytes may be over before its constructor returns.
    if (!this.#isOver) sessions.add(this.#info, session);
    logger.debug({ session: this.#logFields() }, "session started");
  }

  #over(report: SessionReport): void {
    this.#isOver = true;
    const { clock, metrics, sessions, logger } = this.#gateway;
    const durationSeconds = (clock.now() - this.#startedMs) / 1_000;
    sessions.delete(this.#info.id);
    this.#giveBack?.();
    metrics.streamingEnded(this.#info.subresource, this.#info.plan, report, durationSeconds);
    logger.info({ session: this.#logFields(), ...report, durationSeconds }, "session ended");
  }

  #notStarted(code: number, message: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#giveBack?.();
    this.#gateway.metrics.streamingRefused(this.#info.subresource, this.#info.plan, code);
    this.#gateway.logger.warn({ session: this.#logFields(), code, message }, "session refused");
  }

  #logFields(): Record<string, unknown> {
    const { id, subresource, namespace, pod, node, user, plan } = this.#info;
    const { remoteAddress } = this.#prepared.request;
    return {
      id,
      subresource,
      namespace,
      pod,
      node,
      user,
      remoteAddress,
      plan: plan.kind,
      reason: plan.reason,
    };
  }
}
