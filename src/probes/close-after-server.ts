import type { ProbeSocket } from "./probe-socket.ts";

/**
 * How long a probe waits for its server to close first: after GOAWAY, Go's net/http takes a second.
 * Past it the connection is reset.
 */
const MAX_LINGER_MS = 1_500;
/** Connections of one thread that wait for their servers to close. Past it the oldest is reset. */
const MAX_LINGERING = 1_024;

/** The latest reset time of each connection (ms of `performance.now()`), in ascending order. */
const lingering = new Map<ProbeSocket, number>();
let isSweepDue = false;

/**
 * Closes a connection after the server has closed it, so that the server keeps TIME_WAIT. Resets
 * the connection if the server has not closed it within `MAX_LINGER_MS` (decision 9).
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
