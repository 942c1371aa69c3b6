import type { Duplex } from "node:stream";
import { queuedBytesOf } from "../../net/linger.ts";
import type { SessionContext, Traffic } from "./session.ts";
import { endOf, type SessionEnd } from "./session-end.ts";

/**
 * Says that a session is over, and reports how it ended, once. A completed one is reported when its client has all of it: a client that goes before
 * did not get the result, whatever the node said. `isSpdy`: its client exits as soon as it has the status, and resets with GOAWAY unread. `downstream`: absent where it is known to have it.
 */
export function reportEnd(
  end: SessionEnd,
  downstream: Duplex | undefined,
  traffic: Pick<Traffic, "downstreamBytes" | "upstreamBytes">,
  context: Pick<SessionContext, "onOver" | "onReport">,
  isSpdy = false,
): void {
  context.onOver();
  const report = (reported: SessionEnd): void => {
    const { downstreamBytes, upstreamBytes } = traffic;
    context.onReport?.({ ...reported, downstreamBytes, upstreamBytes });
  };
  if (end.cause !== "completed" || downstream === undefined) {
    report(end);
    return;
  }
  whenTaken(downstream, isSpdy, (isTaken) =>
    report(
      isTaken ? end : endOf("client-gone", `${end.message}, and the client was gone before it had all of it`),
    ),
  );
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
