import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { destroySocket } from "./abort-socket.ts";
import { unsentBytesOf } from "./gathered-writes.ts";
import type { SessionClock } from "./session-clock.ts";

/**
 * A peer that takes this much of its queue gets `lingerMaxMs` again: a slow reader may need longer for
 * all of it.
 */
const LINGER_PROGRESS_BYTES = 1024 * 1024;

export interface LingerTimes {
  /**
   * After this long, in milliseconds, without sending, taking queued bytes, or closing, the peer's
   * connection is destroyed.
   */
  readonly lingerIdleMs: number;
  /** After this long, in milliseconds, a peer that sends or reads too little, but never closes, is disconnected. */
  readonly lingerMaxMs: number;
}

/** The other end: a client that dialled us, or a node that we dialled. */
type LingerPeer = "client" | "node";

/**
 * Ends a socket without losing written bytes: flush, half-close, then read and discard until the peer
 * closes. Closing a socket while input arrives makes the kernel send RST, which discards bytes that
 * the peer has not read. That is how the reference loses the tail of large outputs
 * (kubernetes/kubernetes#142376): a client that pings, or still sends stdin, kills its own last
 * megabytes.
 *
 * A node gets the same time, unless the clock hurries: then it is left once the kernel has our bytes, at
 * once if it has them already. No client waits for what it still sends.
 */
export function finishAndLinger(
  socket: Duplex,
  times: LingerTimes,
  clock: SessionClock,
  peer: LingerPeer = "client",
): void {
  if (socket.destroyed) return;
  const mayLeave = (): boolean => peer === "node" && clock.isHurried && queuedBytesOf(socket) === 0;
  // Without a farewell: of 10,000 connections that end together, it would be the largest cost.
  if (socket instanceof Socket && mayLeave()) {
    socket.destroy();
    return;
  }
  let startMs = clock.now();
  let lastHeardMs = startMs;

  let queuedBytes = queuedBytesOf(socket);
  let progressBytes = queuedBytes;

  const ticking = {
    tick(nowMs: number): void {
      // A peer that takes queued bytes is alive, however slowly it reads. An ending socket emits no 'drain'.
      const queuedNow = queuedBytesOf(socket);
      if (queuedNow !== queuedBytes || isAway(socket)) lastHeardMs = nowMs;
      if (progressBytes - queuedNow >= LINGER_PROGRESS_BYTES && Number.isFinite(nowMs)) {
        startMs = nowMs;
        progressBytes = queuedNow;
      }
      queuedBytes = queuedNow;
      const isSilent = nowMs - lastHeardMs >= times.lingerIdleMs;
      if (!isSilent && !mayLeave() && nowMs - startMs < times.lingerMaxMs) return;
      // An HTTP/2 stream whose bytes were not all sent must not look complete.
      if (socket.writableFinished) socket.destroy();
      else destroySocket(socket);
    },
  };
  const heard = (): void => {
    lastHeardMs = clock.now();
  };

  clock.add(ticking);
  // One by one: `removeAllListeners` would slow down the socket's listener table for the rest of its life.
  for (const listener of socket.listeners("data")) socket.off("data", listener as () => void);
  socket.on("data", heard);
  socket.on("error", () => socket.destroy());
  // Both directions are done: close the descriptor now. `end` alone leaves a half-open socket open.
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

/** A socket that outlives its connections (resumable-socket.ts) has its own limit for waiting without one. */
function isAway(socket: Duplex & { readonly isAway?: boolean }): boolean {
  return socket.isAway === true;
}

/**
 * Written bytes that the peer's system has not taken yet. For a resumable socket this includes
 * unacknowledged bytes, which are no longer queued.
 */
export function queuedBytesOf(socket: Duplex & { readonly undeliveredBytes?: number }): number {
  return unsentBytesOf(socket) + (socket.undeliveredBytes ?? 0);
}
