import type { Duplex } from "node:stream";
import { queuedBytesOf } from "@sluice/client/internal/net/linger";
import type { SessionClock, Ticking } from "@sluice/client/internal/net/session-clock";

/** Error codes of reads and writes on a connection that the peer has reset. */
const RESETS: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

/**
 * Calls back once: true if the peer ended or reset after it had taken everything or the result
 * (`isResultSent`). Clients exit with the result, which resets if a farewell is unread or unsent.
 */
export function whenTaken(
  socket: Duplex,
  settle: (isTaken: boolean) => void,
  isResultSent: () => boolean = () => false,
): void {
  const isAllSent = (): boolean => queuedBytesOf(socket) === 0;
  const isReset = (): boolean => RESETS.has((socket.errored as NodeJS.ErrnoException | null)?.code ?? "");
  if (socket.destroyed) {
    const hasLeft = socket.readableEnded || socket.errored !== null;
    settle((socket.writableFinished && hasLeft) || (isReset() && isResultSent()));
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
    const error = socket.errored as NodeJS.ErrnoException | null;
    // After all data was taken, only the shutdown itself fails.
    const isAllTaken = socket.writableFinished || error?.syscall === "shutdown";
    finished((isAllTaken && (error !== null || hasPeerEnded)) || (isReset() && isResultSent()));
  };
  socket.on("end", ended);
  socket.on("close", closed);
}

/**
 * Calls back once `waits` settles, or after `maxMs`. It uses the session clock, so that a shutdown
 * waits, too.
 */
export function whenSettled(
  waits: Promise<unknown>,
  clock: SessionClock,
  maxMs: number,
  settle: () => void,
): void {
  const untilMs = clock.now() + maxMs;
  let isSettled = false;
  const waiting: Ticking = {
    tick: (nowMs) => {
      if (nowMs < untilMs || isSettled) return;
      isSettled = true;
      clock.delete(waiting);
      settle();
    },
  };
  clock.contain(waiting, "session", () => clock.delete(waiting));
  clock.add(waiting);
  void waits.then(() => waiting.tick(untilMs));
}
