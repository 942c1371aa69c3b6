import type { Duplex } from "node:stream";
import { StatusError } from "@sluice/client/internal/api/status";
import { type HeaderList, headerValue } from "@sluice/client/internal/http/header-list";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { contain } from "@sluice/client/internal/observability/faults";
import type { TraceSpan } from "@sluice/client/internal/observability/trace";
import type { AuditTrail } from "../access/audit/audit-trail.ts";
import { CircuitOpenError } from "../nodes/circuit-breaker.ts";
import type { SessionRunContext } from "./context.ts";
import { type Admission, timesOf } from "./leg.ts";
import { SessionLifecycle, type SessionOwner } from "./lifecycle.ts";
import type { SessionObserver } from "./observers/session-observer.ts";
import type { SessionObservers } from "./observers/session-observers.ts";
import type { SessionReport, StreamingSession } from "./session.ts";
import type { SessionInfo } from "./session-info.ts";

/**
 * One session as operators see it: its place, its metrics, and a log line at its start and end. It
 * records no command line, header or payload.
 */
export class SessionRecord implements SessionOwner {
  #admission: Admission;
  #info: SessionInfo;
  readonly #gateway: SessionRunContext;
  readonly #startedMs: number;
  readonly #trail: AuditTrail | undefined;
  /** Release the session's places. */
  readonly #releases: (() => void)[] = [];
  #observers: readonly SessionObserver[] = [];
  #span: TraceSpan | undefined;
  /** True once the session was refused or has started. */
  #isSettled = false;

  constructor(admission: Admission, startedMs: number, gateway: SessionRunContext, trail?: AuditTrail) {
    this.#trail = trail;
    const { request, node, user, plan } = admission;
    this.#admission = admission;
    this.#gateway = gateway;
    this.#startedMs = startedMs;
    const startedAt = new Date();
    this.#info = {
      id: gateway.sessions.newId(startedAt),
      subresource: request.subresource,
      namespace: request.namespace,
      pod: request.pod,
      node,
      user: user.name,
      ...(user.requestedBy !== undefined && { requestedBy: user.requestedBy }),
      plan,
      startedAt,
      details: detailsOf(admission),
    };
    admission.trace?.set({
      "k8s.namespace.name": request.namespace,
      "k8s.pod.name": request.pod,
      "k8s.node.name": node,
      "sluice.plan": plan.kind,
      "sluice.session.id": this.#info.id,
    });
    gateway.metrics.streamingRouted(request.subresource, plan, request.offer.transport);
  }

  get info(): SessionInfo {
    return this.#info;
  }

  /** Acquires a place; throws a StatusError 429 or 503 if none is free. */
  async acquirePlace(): Promise<void> {
    const { user, namespace } = this.#info;
    this.#releases.push(this.#gateway.sessions.admit());
    const releaseQuota = await this.#gateway.policy?.quotas.take(user, namespace);
    if (releaseQuota !== undefined) this.#releases.push(releaseQuota);
  }

  /** Awaits the step before the dial, if there is one; rejects with its StatusError. */
  async prepare(signal: AbortSignal): Promise<void> {
    const { beforeDial } = this.#gateway;
    if (beforeDial === undefined) return;
    const annotate = (name: string, value: string): void => this.#trail?.annotate(name, value);
    const recordAudit = (): void => this.#trail?.goesOn();
    const session = { ...this.#admission, info: this.#info, annotate, recordAudit };
    this.#observers = await beforeDial(session, signal);
  }

  /** The observers from before the dial. */
  get observers(): readonly SessionObserver[] {
    return this.#observers;
  }

  /** Records a plan that replaces the first one. */
  planned(admission: Admission): void {
    if (admission.plan === this.#admission.plan) return;
    this.#admission = admission;
    this.#info = { ...this.#info, plan: admission.plan };
  }

  /** Records the protocol that the answer to the client names. */
  agreed(answer: HeaderList): void {
    const { details } = this.#info;
    const protocol =
      headerValue(answer, "Sec-WebSocket-Protocol") ?? headerValue(answer, "X-Stream-Protocol-Version") ?? "";
    if (details !== undefined) this.#info = { ...this.#info, details: { ...details, protocol } };
  }

  /** The node refused the session, and the client has its answer. */
  refused(status: number): void {
    this.#notStarted(status, "the node refused the session");
    this.#trail?.complete({ code: status });
    this.#admission.trace?.end(status);
  }

  /** The session could not start. */
  failed(error: unknown): void {
    const code = error instanceof StatusError ? error.code : 500;
    const hasLeft = error instanceof UpstreamError && error.code === "aborted";
    const reason = hasLeft ? "the client left" : error instanceof Error ? error.message : "unknown";
    this.#notStarted(code, reason, error instanceof CircuitOpenError ? "debug" : "warn");
  }

  /**
   * Both upgrades are done, the client's with this status. From here on the session's lifecycle reports
   * its end.
   */
  start(
    answered: 101 | 200,
    sockets: readonly Duplex[],
    observers: SessionObservers,
    begin: (life: SessionLifecycle) => StreamingSession,
  ): void {
    const { clock, timeouts, metrics, logger } = this.#gateway;
    const { subresource, plan } = this.#info;
    this.#isSettled = true;
    const { trace } = this.#admission;
    metrics.streamingStarted(subresource, plan, (clock.now() - this.#startedMs) / 1_000, trace);
    this.#auditStart(answered);
    this.#span = trace?.begin("session");
    trace?.end(answered);
    logger.info({ session: this.#logFields() }, "session started");
    const times = timesOf(this.#admission.policy, timeouts);
    const life = new SessionLifecycle(this.#gateway, times, this, observers);
    const { standing } = this.#admission;
    const unfollow = standing && this.#gateway.reauthorizer?.follow(life, standing);
    if (unfollow !== undefined) this.#releases.push(unfollow);
    life.carry(sockets, begin);
  }

  onOver(): void {
    for (const release of this.#releases.splice(0)) release();
  }

  onReport(report: SessionReport): void {
    const { clock, metrics, logger } = this.#gateway;
    const durationSeconds = (clock.now() - this.#startedMs) / 1_000;
    annotateEnd(this.#trail, report);
    const { endedBy, cause, downstreamBytes, upstreamBytes } = report;
    this.#span?.set({
      "sluice.ended_by": endedBy,
      "sluice.end_cause": cause,
      "sluice.bytes.downstream": downstreamBytes,
      "sluice.bytes.upstream": upstreamBytes,
    });
    this.#span?.end(report.code >= 500 ? cause : undefined);
    const { subresource, plan } = this.#info;
    metrics.streamingEnded(subresource, plan, report, durationSeconds, this.#admission.trace);
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

  #notStarted(code: number, reason: string, level: "debug" | "warn" = "warn"): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.onOver();
    for (const observer of this.#observers)
      contain(
        "observer",
        () => observer.onNotStarted?.(),
        () => {},
      );
    this.#gateway.metrics.streamingRefused(this.#info.subresource, this.#info.plan, code);
    this.#gateway.logger[level]({ session: this.#logFields(), code, reason }, "session refused");
  }

  #logFields(): Record<string, unknown> {
    const { id, subresource, namespace, pod, node, user, requestedBy, plan } = this.#info;
    const { policy, request, trace } = this.#admission;
    const { remoteAddress } = request;
    return {
      id,
      subresource,
      namespace,
      pod,
      node,
      user,
      requestedBy,
      remoteAddress,
      plan: plan.kind,
      reason: plan.reason,
      ...(trace !== undefined && { traceId: trace.traceId }),
      ...(policy.rule !== undefined && { policyRule: policy.rule.name }),
      ...(policy.reason !== "" && { givenReason: policy.reason }),
    };
  }
}

function detailsOf({
  request,
  user,
  container = request.container,
  isEphemeral = false,
}: Admission): SessionInfo["details"] {
  const { command, streams, headers, remoteAddress } = request;
  return {
    ...(request.subresource !== "portforward" && { container, isEphemeral }),
    command,
    tty: streams.tty,
    stdin: streams.stdin,
    groups: user.groups,
    ...(user.expiresAtMs !== undefined && { expiresAtMs: user.expiresAtMs }),
    client: { address: remoteAddress, agent: headerValue(headers, "user-agent") ?? "" },
    protocol: "",
  };
}

/** Records on the request's last audit event how the session ended. */
export function annotateEnd(
  trail: AuditTrail | undefined,
  { endedBy, cause, code, downstreamBytes, upstreamBytes }: SessionReport,
): void {
  trail?.annotate("sluice.dev/ended-by", endedBy);
  trail?.annotate("sluice.dev/end-cause", cause);
  trail?.annotate("sluice.dev/end-code", String(code));
  trail?.annotate("sluice.dev/downstream-bytes", String(downstreamBytes));
  trail?.annotate("sluice.dev/upstream-bytes", String(upstreamBytes));
  // The event has the answer's code; the annotations say how the session ended.
  trail?.complete({});
}
