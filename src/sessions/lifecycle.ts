import type { Duplex } from "node:stream";
import { abortSocket } from "@sluice/client/internal/net/abort-socket";
import type { SessionClock, Ticking } from "@sluice/client/internal/net/session-clock";
import {
  contain,
  containEvents,
  reportFault,
  settleFault,
} from "@sluice/client/internal/observability/faults";
import { type CauseOfOurs, endOf, type SessionEnd } from "@sluice/client/internal/sessions/session-end";
import type { CommandStatus } from "@sluice/protocols/remotecommand";
import { type Bandwidth, Pace } from "../net/bandwidth.ts";
import { maskControls } from "../observability/mask-controls.ts";
import type { ObservedSession, SessionObserver, Side } from "./observers/session-observer.ts";
import { SessionObservers } from "./observers/session-observers.ts";
import type { InputResult, SessionReport, SessionTimeouts, StreamingSession } from "./session.ts";
import type { SessionInfo } from "./session-info.ts";
import type { RunningSession, Sessions } from "./sessions.ts";
import { whenSettled, whenTaken } from "./when-taken.ts";

/** A limit's warning comes this long before the end, or at half of a shorter limit. */
const WARN_BEFORE_MS = 60_000;
/**
 * How long all observers together may delay the report of a session's end, and so a shutdown. Past
 * it the end is reported.
 */
const MAX_END_WAIT_MS = 5_000;
/** The message for a session that failed because of an exception in this process. */
const INTERNAL_ERROR = "the gateway failed to carry the session";

/** The message for sessions that still run after the grace period. */
export const SHUTTING_DOWN = "the gateway is shutting down";

/** Shared by a process's sessions. */
interface SessionEnvironment {
  readonly clock: SessionClock;
  readonly sessions: Pick<Sessions, "add" | "delete">;
  /** Absent: no bandwidth limit. */
  readonly bandwidth?: Bandwidth | undefined;
}

/** Is notified of a session's end. Each method is called once. */
export interface SessionOwner {
  /** Absent: session lists do not show it. */
  readonly info?: SessionInfo | undefined;
  /** Nothing is carried any more, but sockets may still be draining. */
  onOver?: (() => void) | undefined;
  /** Called with or after `onOver`: a session counts as completed only once its client has everything. */
  onReport?(report: SessionReport): void;
}

/**
 * The life of one session: counts, limits, clock and list entries, containment of exceptions, and one
 * end with a cause. No method here is called for each chunk.
 */
export class SessionLifecycle implements Ticking, RunningSession, ObservedSession {
  /** Upstream to downstream, so far. */
  downstreamBytes = 0;
  /** Downstream to upstream, so far. */
  upstreamBytes = 0;
  /** True once nothing is carried any more. */
  isOver = false;
  readonly timeouts: SessionTimeouts;
  /** By the session clock, in milliseconds. */
  readonly startedMs: number;
  readonly observers: SessionObservers;
  readonly #environment: SessionEnvironment;
  readonly #owner: SessionOwner;
  #session: StreamingSession | undefined;
  #earlyEnd: SessionEnd | undefined;
  #nodePace: Pace | undefined;
  #clientPace: Pace | undefined;
  #sockets: readonly Duplex[] = [];
  #seenBytes = 0;
  #lastMovedMs: number;
  #hasWarnedOfEnd = false;
  #hasWarnedOfIdle = false;
  #hasFailed = false;
  #isReported = false;

  constructor(
    environment: SessionEnvironment,
    timeouts: SessionTimeouts,
    owner: SessionOwner,
    observers: SessionObservers = new SessionObservers(),
  ) {
    this.observers = observers;
    this.#environment = environment;
    this.#owner = owner;
    this.timeouts = timeouts;
    this.startedMs = this.#lastMovedMs = environment.clock.now();
  }

  get clock(): SessionClock {
    return this.#environment.clock;
  }

  /** The pace of what this side sends, for its `feed`: bandwidth, and the holds of observers. */
  pace(side: Side): Pace {
    const { bandwidth } = this.#environment;
    if (side === "node") this.#nodePace ??= new Pace(bandwidth);
    else this.#clientPace ??= new Pace(bandwidth);
    return (side === "node" ? this.#nodePace : this.#clientPace) as Pace;
  }

  hold(side: Side): () => void {
    return this.pace(side).hold();
  }

  get info(): SessionInfo | undefined {
    return this.#owner.info;
  }

  /**
   * Begins the session. An exception in a socket's callback or in a tick ends only this session: through
   * its own `end`, which its client sees, or, if that throws, by breaking both connections.
   */
  carry(sockets: readonly Duplex[], begin: (life: SessionLifecycle) => StreamingSession): void {
    const { clock, sessions } = this.#environment;
    this.#sockets = sockets;
    sessions.add(this);
    clock.add(this);
    for (const socket of sockets) containEvents(socket, "session", this.#failed);
    contain(
      "session",
      () => {
        this.observers.begin(this);
        this.#session = begin(this);
        if (this.#earlyEnd !== undefined) this.#session.end(this.#earlyEnd);
      },
      this.#failed,
    );
  }

  observe(observer: SessionObserver): () => void {
    contain("session", () => this.observers.add(observer, this), this.#failed);
    return () => this.observers.remove(observer);
  }

  input(bytes: Uint8Array, by: string): InputResult {
    const session = this.#session;
    if (this.isOver || this.info?.details?.stdin !== true) return "no-input";
    if (session === undefined) return "later";
    if (bytes.byteLength === 0) return session.readsInput === true ? "taken" : "no-input";
    let result: InputResult = "no-input";
    contain(
      "session",
      () => {
        result = session.input?.(bytes, by) ?? "no-input";
      },
      this.#failed,
    );
    return result;
  }

  joined(user: string, hasJoined: boolean): void {
    if (this.isOver) return;
    const what = hasJoined ? "has joined this session and can type" : "has left this session";
    contain(
      "session",
      () => {
        this.observers.joined(user, hasJoined);
        this.#session?.warn?.(`${maskControls(user).replace(/\s+/g, " ")} ${what}`);
      },
      this.#failed,
    );
  }

  /**
   * Calls `pass` now, or once no observer delays the node's report; never if the session has ended
   * before.
   */
  passReport(pass: () => void): void {
    const waits = this.observers.report();
    if (waits === undefined) {
      pass();
      return;
    }
    const passNow = (): void => {
      if (!this.isOver) contain("session", pass, this.#failed);
    };
    waits.then(passNow, (error: unknown) => settleFault("session", error, this.#failed));
  }

  tick(nowMs: number): void {
    if (this.#session === undefined || this.isOver) return;
    try {
      // The process stops, and its drain had no time for this session.
      if (nowMs === Number.POSITIVE_INFINITY) this.cut("shutdown", SHUTTING_DOWN);
      else this.#session.tick(nowMs);
      if (!this.isOver) this.#checkLimits(this.#session, nowMs);
    } catch (error) {
      settleFault("session", error, this.#failed);
    }
  }

  /** Milliseconds without traffic, measured by ticks: the hot path only adds bytes. */
  idleForMs(nowMs: number): number {
    const bytes = this.downstreamBytes + this.upstreamBytes;
    if (bytes !== this.#seenBytes) {
      this.#seenBytes = bytes;
      this.#lastMovedMs = nowMs;
    }
    return nowMs - this.#lastMovedMs;
  }

  /** Ends the session from outside. An end before the session carries anything waits until it does. */
  cut(cause: CauseOfOurs, message: string, status?: CommandStatus): void {
    const end = endOf(cause, message, status);
    if (this.#session === undefined) this.#earlyEnd ??= end;
    else contain("session", () => this.#session?.end(end), this.#failed);
  }

  /**
   * Ends the session; later calls do nothing. A completed one is reported once its client has all.
   * `downstream`: absent if the client is known to have it. `isResultSent`: see whenTaken.
   */
  end(end: SessionEnd, downstream: Duplex | undefined, isResultSent?: () => boolean): void {
    if (this.isOver) return;
    this.#over();
    if (end.cause !== "completed" || downstream === undefined) {
      this.#report(end);
      return;
    }
    const left = `${end.message}, and the client was gone before it had all of it`;
    const settle = (isTaken: boolean): void => this.#report(isTaken ? end : endOf("client-gone", left));
    whenTaken(downstream, settle, isResultSent);
  }

  /** Applies the idle limit and policy's maximum duration. Each warns once before it ends the session. */
  #checkLimits(session: StreamingSession, nowMs: number): void {
    const { idleMs, maxDurationMs = Number.POSITIVE_INFINITY } = this.timeouts;
    const idleLeftMs = idleMs - this.idleForMs(nowMs);
    const leftMs = maxDurationMs - (nowMs - this.startedMs);
    if (leftMs <= 0) {
      session.end(endOf("time-limit", "the session reached its time limit"));
    } else if (idleLeftMs <= 0) {
      session.end(endOf("idle", "the session was idle for too long"));
    } else if (!this.#hasWarnedOfEnd && leftMs <= warningTimeOf(maxDurationMs)) {
      this.#hasWarnedOfEnd = true;
      session.warn?.(`this session reaches its time limit in ${seconds(leftMs)}`);
    } else {
      this.#warnOfIdle(session, idleLeftMs, warningTimeOf(idleMs));
    }
  }

  /** After new traffic the next idle period warns again. */
  #warnOfIdle(session: StreamingSession, leftMs: number, warningMs: number): void {
    const isDue = leftMs <= warningMs;
    if (isDue && !this.#hasWarnedOfIdle)
      session.warn?.(`this session is idle and will be ended in ${seconds(leftMs)}`);
    this.#hasWarnedOfIdle = isDue;
  }

  readonly #failed = (): void => {
    const isFirst = !this.#hasFailed;
    this.#hasFailed = true;
    if (isFirst && this.#session !== undefined) {
      try {
        this.#session.end(endOf("internal-error", INTERNAL_ERROR));
        return;
      } catch (error) {
        reportFault("session", error);
      }
    }
    for (const socket of this.#sockets) abortSocket(socket);
    if (!this.isOver) this.#over();
    this.#report(endOf("internal-error", INTERNAL_ERROR));
  };

  #over(): void {
    this.isOver = true;
    this.observers.over();
    this.clock.delete(this);
    this.#owner.onOver?.();
  }

  #report(end: SessionEnd): void {
    if (this.#isReported) return;
    this.#isReported = true;
    const { downstreamBytes, upstreamBytes } = this;
    const { endedBy, cause, code, message } = end;
    const report = { endedBy, cause, code, message, downstreamBytes, upstreamBytes };
    const waits = this.observers.end(report);
    const finish = (): void => {
      this.#environment.sessions.delete(this);
      this.#owner.onReport?.(report);
    };
    if (waits === undefined) finish();
    else whenSettled(waits, this.clock, MAX_END_WAIT_MS, finish);
  }
}

function warningTimeOf(limitMs: number): number {
  return Math.min(WARN_BEFORE_MS, limitMs / 2);
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`;
}
