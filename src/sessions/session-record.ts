import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import type { AuditTrail } from "../access/audit/audit-trail.ts";
import { StatusError } from "../api/status.ts";
import { UpstreamError } from "../net/upstream-error.ts";
import { CircuitOpenError } from "../nodes/circuit-open-error.ts";
import { type Admission, timesOf } from "./admission.ts";
import { beginContained, INTERNAL_ERROR } from "./carriers/contained-session.ts";
import type { SessionContext, SessionReport, StreamingSession } from "./carriers/session.ts";
import { endOf } from "./carriers/session-end.ts";
import type { SessionRunContext } from "./context.ts";
import type { SessionInfo } from "./sessions.ts";

/**
 * What operators see of one session, from the decision to its end: its place among the admitted ones, metrics, one log
 * line when it starts and one when it ends. No command line, header or payload is ever recorded.
 */
export class SessionRecord {
  #admission: Admission;
  readonly #gateway: SessionRunContext;
  #info: SessionInfo;
  readonly #startedMs: number;
  readonly #trail: AuditTrail | undefined;
  #giveBack: (() => void) | undefined;
  #isOver = false;
  #isReported = false;

  constructor(admission: Admission, startedMs: number, gateway: SessionRunContext, trail?: AuditTrail) {
    this.#trail = trail;
    const { request, node, user, plan } = admission;
    this.#admission = admission;
    this.#gateway = gateway;
    this.#startedMs = startedMs;
    this.#info = {
      id: randomUUID(),
      subresource: request.subresource,
      namespace: request.namespace,
      pod: request.pod,
      node,
      user: user.name,
      plan,
      startedAt: new Date(),
    };
    gateway.metrics.streamingRouted(request.subresource, plan, request.offer.transport);
  }

  /** Takes a place; throws a StatusError 429 or 503 when there is none. */
  async takePlace(): Promise<void> {
    const { user, namespace } = this.#info;
    const giveBackPlace = this.#gateway.sessions.admit();
    this.#giveBack = giveBackPlace;
    const giveBackQuota = await this.#gateway.policy?.quotas.take(user, namespace);
    this.#giveBack = () => {
      giveBackPlace();
      giveBackQuota?.();
    };
  }

  /** Another plan than the first was taken. */
  planned(admission: Admission): void {
    if (admission.plan === this.#admission.plan) return;
    this.#admission = admission;
    this.#info = { ...this.#info, plan: admission.plan };
  }

  /** The node refused; the client has its answer. */
  refused(status: number): void {
    this.#notStarted(status, "the node refused the session");
    this.#trail?.complete({ code: status });
  }

  /** The session never came to be. */
  failed(error: unknown): void {
    const code = error instanceof StatusError ? error.code : 500;
    const hasLeft = error instanceof UpstreamError && error.code === "aborted";
    const reason = hasLeft ? "the client left" : error instanceof Error ? error.message : "unknown";
    this.#notStarted(code, reason, error instanceof CircuitOpenError ? "debug" : "warn");
  }

  /** Both upgrades are done, the client's with this code: from here on the session's report is the last word. */
  start(
    answered: 101 | 200,
    sockets: readonly Duplex[],
    begin: (context: SessionContext) => StreamingSession,
  ): void {
    const { clock, bandwidth, timeouts, metrics, sessions, logger } = this.#gateway;
    const { subresource, plan } = this.#info;
    metrics.streamingStarted(subresource, plan, (clock.now() - this.#startedMs) / 1_000);
    this.#auditStart(answered);
    const onOver = (): void => {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#giveBack?.();
    };
    const context: SessionContext = {
      clock,
      bandwidth,
      lingerTimes: timeouts,
      timeouts: timesOf(this.#admission.policy, timeouts),
      onOver,
      onReport: (report) => this.#report(report),
    };
    logger.info({ session: this.#logFields() }, "session started");
    const onBroken = (): void => {
      onOver();
      const { downstreamBytes = 0, upstreamBytes = 0 } = session?.traffic ?? {};
      if (!this.#isReported)
        this.#report({ ...endOf("internal-error", INTERNAL_ERROR), downstreamBytes, upstreamBytes });
    };
    let session: StreamingSession | undefined;
    session = beginContained(sockets, clock, () => begin(context), onBroken);
    // A session of a few bytes may be over before its constructor returns.
    if (!this.#isReported && session !== undefined) sessions.add(this.#info, session);
  }

  #report(report: SessionReport): void {
    this.#isReported = true;
    const { clock, metrics, sessions, logger } = this.#gateway;
    const durationSeconds = (clock.now() - this.#startedMs) / 1_000;
    sessions.delete(this.#info.id);
    this.#auditEnd(report);
    metrics.streamingEnded(this.#info.subresource, this.#info.plan, report, durationSeconds);
    const { message: reason, ...end } = report;
    logger.info({ session: this.#logFields(), ...end, reason, durationSeconds }, "session ended");
  }

  #auditStart(code: number): void {
    const { id, node, plan } = this.#info;
    this.#trail?.annotate("sluice.dev/session", id);
    this.#trail?.annotate("sluice.dev/node", node);
    this.#trail?.annotate("sluice.dev/plan", plan.kind);
    this.#trail?.annotate("sluice.dev/plan-reason", plan.reason);
    const { rule, reason } = this.#admission.policy;
    if (rule !== undefined) this.#trail?.annotate("sluice.dev/policy-rule", rule.name);
    if (reason !== "") this.#trail?.annotate("sluice.dev/reason", reason);
    this.#trail?.started({ code });
  }

  #auditEnd({ endedBy, cause, code, downstreamBytes, upstreamBytes }: SessionReport): void {
    this.#trail?.annotate("sluice.dev/ended-by", endedBy);
    this.#trail?.annotate("sluice.dev/end-cause", cause);
    this.#trail?.annotate("sluice.dev/end-code", String(code));
    this.#trail?.annotate("sluice.dev/downstream-bytes", String(downstreamBytes));
    this.#trail?.annotate("sluice.dev/upstream-bytes", String(upstreamBytes));
    // The code of the answer; how the session ended stands in the annotations.
    this.#trail?.complete({});
  }

  #notStarted(code: number, reason: string, level: "debug" | "warn" = "warn"): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#giveBack?.();
    this.#gateway.metrics.streamingRefused(this.#info.subresource, this.#info.plan, code);
    this.#gateway.logger[level]({ session: this.#logFields(), code, reason }, "session refused");
  }

  #logFields(): Record<string, unknown> {
    const { id, subresource, namespace, pod, node, user, plan } = this.#info;
    const { policy, request } = this.#admission;
    const { remoteAddress } = request;
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
      ...(policy.rule !== undefined && { policyRule: policy.rule.name }),
      ...(policy.reason !== "" && { givenReason: policy.reason }),
    };
  }
}
