import type { Duplex } from "node:stream";
import { unsentBytesOf } from "./gathered-writes.ts";
import type { SessionClock } from "./session-clock.ts";

export interface LingerTimes {
  /** A peer that neither sends, nor takes what is queued for it, nor closes for this long is let go, in milliseconds. */
  readonly lingerIdleMs: number;
  /** A peer that keeps sending but never closes is let go after this long, in milliseconds. */
  readonly lingerMaxMs: number;
}

/**
 * Ends a socket so that nothing written to it is lost: flush, half-close, then read and discard until the peer
 * closes too.
 *
 * A socket that is closed while input arrives makes the kernel send RST, and a RST throws away what the peer has
 * not read yet. That is how the reference loses the tail of large outputs (kubernetes/kubernetes#142376): a client
 * that pings, or still sends stdin, kills its own last megabytes.
 */
export function finishAndLinger(socket: Duplex, times: LingerTimes, clock: SessionClock): void {
  if (socket.destroyed) return;
  let startMs = clock.now();
  let lastHeardMs = startMs;

  let queuedBytes = queuedBytesOf(socket);

  const ticking = {
    tick(nowMs: number): void {
      // A peer that takes what is queued is alive, however slowly it reads. No 'drain' says so once the socket is ending.
      const queuedNow = queuedBytesOf(socket);
      if (queuedNow !== queuedBytes || isAway(socket)) lastHeardMs = nowMs;
      // How long it may stay counts from when it has everything: a slow reader's queue can take longer.
      if (queuedNow !== queuedBytes && Number.isFinite(nowMs)) startMs = nowMs;
      queuedBytes = queuedNow;
      const isSilent = nowMs - lastHeardMs >= times.lingerIdleMs;
      if (isSilent || nowMs - startMs >= times.lingerMaxMs) socket.destroy();
    },
  };
  const heard = (): void => {
    lastHeardMs = clock.now();
  };

  clock.add(ticking);
  // One by one: `removeAllListeners` makes the socket's table of listeners slow for what is left of its life.
  for (const listener of socket.listeners("data")) socket.off("data", listener as () => void);
  socket.on("data", heard);
  socket.on("error", () => socket.destroy());
  // Both directions done: the fd can go at once. `end` alone leaves a half-open socket open.
  socket.once("end", () => {
    if (socket.writableFinished) socket.destroy();
    else socket.once("finish", () => socket.destroy());
  });
  socket.once("close", () => clock.delete(ticking));
  if (socket.readableEnded) socket.once("finish", () => socket.destroy());
  socket.resume();
  if (!socket.writableEnded) socket.end();
  else if (socket.writableFinished && socket.readableEnded) socket.destroy();
}

/** A socket that outlives its connections (resumable-socket.ts) sets its own bound to how long it waits for one. */
function isAway(socket: Duplex & { readonly isAway?: boolean }): boolean {
  return socket.isAway === true;
}

/** Bytes written that the peer's system has not taken yet. A resumable socket also has some on their way that are no longer queued. */
export function queuedBytesOf(socket: Duplex & { readonly undeliveredBytes?: number }): number {
  return unsentBytesOf(socket) + (socket.undeliveredBytes ?? 0);
}
