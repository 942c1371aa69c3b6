import type { Duplex } from "node:stream";
import { queuedBytesOf } from "../net/linger.ts";
import { type SessionContext, type StreamingSession, Traffic } from "./carriers/session.ts";
import { endOf, type SessionEnd } from "./carriers/session-end.ts";
import { SessionLimits } from "./carriers/session-limits.ts";

/**
 * What every session has beside its bytes: its counts, its limits, its place at the clock, and one end, which it reports. Carriers count in
 * `traffic` and look at `isOver`; nothing here is called for a chunk.
 */
export class SessionLifecycle {
  readonly traffic: Traffic;
  /** By the session clock. */
  readonly startedMs: number;
  /** Nothing is carried any more. */
  isOver = false;
  readonly #context: SessionContext;
  readonly #session: StreamingSession;
  readonly #limits: SessionLimits;

  constructor(session: StreamingSession, context: SessionContext) {
    this.#session = session;
    this.#context = context;
    this.startedMs = context.clock.now();
    this.traffic = new Traffic(this.startedMs);
    this.#limits = new SessionLimits(this.startedMs, context.timeouts);
  }

  /** From here on the session is ticked. */
  begin(): void {
    this.#context.clock.add(this.#session);
  }

  /** Ends the session where a limit is reached. `warn`: writes what comes before it; absent where a warning has no place among the bytes. */
  checkLimits(nowMs: number, warn?: (message: string) => void): void {
    const due = this.#limits.check(nowMs, this.traffic);
    if (due?.type === "end") this.#session.end(due.cause, due.message);
    else if (due?.type === "warn") warn?.(due.message);
  }

  /**
   * The session is over; a later end is none. A completed one is reported when its client has all of it: a client that goes before did not
   * get the result, whatever the node said. `isSpdy`: its client exits as soon as it has the status, and resets with GOAWAY unread.
   * `downstream`: absent where it is known to have it.
   */
  end(end: SessionEnd, downstream: Duplex | undefined, isSpdy = false): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#context.clock.delete(this.#session);
    this.#context.onOver();
    if (end.cause !== "completed" || downstream === undefined) {
      this.#report(end);
      return;
    }
    whenTaken(downstream, isSpdy, (isTaken) => {
      const left = `${end.message}, and the client was gone before it had all of it`;
      this.#report(isTaken ? end : endOf("client-gone", left));
    });
  }

  #report(end: SessionEnd): void {
    const { downstreamBytes, upstreamBytes } = this.traffic;
    this.#context.onReport?.({ ...end, downstreamBytes, upstreamBytes });
  }
}

/**
 * Calls back once: true when the peer ended its side behind everything that was written, false when the connection broke, or
 * was given up (linger.ts), before. What the peer's kernel took and its process never read is known only by a reset.
 */
function whenTaken(socket: Duplex, isSpdy: boolean, settle: (isTaken: boolean) => void): void {
  const isAllSent = (): boolean => queuedBytesOf(socket) === 0;
  if (socket.destroyed) {
    settle(socket.readableEnded && socket.writableFinished && socket.errored === null);
    return;
  }
  let hasPeerEnded = socket.readableEnded;
  const finished = (isTaken: boolean): void => {
    socket.off("end", ended);
    socket.off("close", closed);
    settle(isTaken);
  };
  const ended = (): void => {
    hasPeerEnded = true;
    if (isAllSent()) finished(true);
  };
  const closed = (): void => {
    const isReset = socket.errored !== null;
    finished(socket.writableFinished && (isReset ? isSpdy : hasPeerEnded));
  };
  socket.on("end", ended);
  socket.on("close", closed);
}
