import type { Duplex } from "node:stream";
import { queuedBytesOf } from "../net/linger.ts";

/** What a read, or a write, says of a connection that its peer has reset. */
const RESETS: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

/**
 * Calls back once: true when the peer ended, or reset, behind all that was written, or behind the
 * result (`isResultSent`): clients exit with it, which resets with a farewell unread, or unsent.
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
    // Only the end of the connection is refused then: all data was taken.
    const isAllTaken = socket.writableFinished || error?.syscall === "shutdown";
    finished((isAllTaken && (error !== null || hasPeerEnded)) || (isReset() && isResultSent()));
  };
  socket.on("end", ended);
  socket.on("close", closed);
}
