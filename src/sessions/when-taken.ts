import type { Duplex } from "node:stream";
import { queuedBytesOf } from "../net/linger.ts";

/**
 * Calls back once: true when the peer ended behind all that was written, false when the connection
 * broke before. `isSpdy`: its peer exits with the status, and resets with GOAWAY unread.
 */
export function whenTaken(socket: Duplex, isSpdy: boolean, settle: (isTaken: boolean) => void): void {
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
