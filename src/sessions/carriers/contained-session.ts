import type { Duplex } from "node:stream";
import { abortSocket } from "../../net/abort-socket.ts";
import type { SessionClock } from "../../net/session-clock.ts";
import { containEvents, reportFault } from "../../observability/faults.ts";
import type { StreamingSession } from "./session.ts";

/** What a session that failed in this process says of its end. */
export const INTERNAL_ERROR = "the gateway failed to carry the session";

/**
 * Begins a session so that an exception in any callback of its sockets, or in its tick, ends that session alone: by its own `end`, so that its
 * client learns of it, and by breaking both connections where that fails too. `onBroken` is called then: the session reports nothing any more.
 */
export function beginContained(
  sockets: readonly Duplex[],
  clock: SessionClock,
  begin: () => StreamingSession,
  onBroken: () => void,
): StreamingSession | undefined {
  let session: StreamingSession | undefined;
  let hasFailed = false;
  const onFailure = (): void => {
    if (!hasFailed && session !== undefined) {
      hasFailed = true;
      try {
        session.end("internal-error", INTERNAL_ERROR);
        return;
      } catch (error) {
        reportFault("session", error);
      }
    }
    hasFailed = true;
    if (session !== undefined) clock.delete(session);
    for (const socket of sockets) abortSocket(socket);
    onBroken();
  };
  for (const socket of sockets) containEvents(socket, "session", onFailure);
  try {
    session = begin();
    clock.contain(session, "session", onFailure);
  } catch (error) {
    reportFault("session", error);
    onFailure();
  }
  return session;
}
