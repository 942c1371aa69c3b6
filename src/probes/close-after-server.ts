import type { ProbeSocket } from "./probe-socket.ts";

/** Go's net/http closes a second after a GOAWAY, Node at once. */
export const MAX_LINGER_MS = 1_500;
/** Connections of one thread that wait at once; one more resets the oldest. */
export const MAX_LINGERING = 1_024;

/** When each is reset at the latest (ms of `performance.now()`), in that order. */
const lingering = new Map<ProbeSocket, number>();
let isSweepDue = false;

/**
 * Closes a connection with a whole answer after the server did, so that the server keeps TIME_WAIT. A server that has
 * not closed within `MAX_LINGER_MS` is reset (decision 9).
 */
export function closeAfterServer(socket: ProbeSocket): void {
  const finish = (): void => {
    lingering.delete(socket);
    socket.destroy();
  };
  socket.hear({ onOpen: () => {}, onData: () => {}, onEnd: finish, onError: finish });
  socket.unref();
  const [oldest] = lingering.size >= MAX_LINGERING ? lingering.keys() : [];
  if (oldest !== undefined) resetOne(oldest);
  lingering.set(socket, performance.now() + MAX_LINGER_MS);
  if (!isSweepDue) sweepIn(MAX_LINGER_MS);
}

function resetOne(socket: ProbeSocket): void {
  lingering.delete(socket);
  socket.reset();
}

function sweepIn(ms: number): void {
  isSweepDue = true;
  setTimeout(sweep, ms).unref();
}

function sweep(): void {
  isSweepDue = false;
  const now = performance.now();
  for (const [socket, dueMs] of lingering) {
    if (dueMs > now) {
      sweepIn(dueMs - now);
      return;
    }
    resetOne(socket);
  }
}
