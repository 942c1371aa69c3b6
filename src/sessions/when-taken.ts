import type { Duplex } from "node:stream";
import { queuedBytesOf } from "../net/linger.ts";

/**
 * Calls back once: true when the peer ended, or reset, behind all that was written, false when the
 * connection broke before. Clients exit with their status, which resets with a farewell unread.
 */
export function whenTaken(socket: Duplex, settle: (isTaken: boolean) => void): void {
  const isAllSent = (): boolean => queuedBytesOf(socket) === 0;
  if (socket.destroyed) {
    settle(socket.writableFinished && (socket.readableEnded || socket.errored !== null));
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
    finished(isAllTaken && (error !== null || hasPeerEnded));
  };
  socket.on("end", ended);
  socket.on("close", closed);
}
