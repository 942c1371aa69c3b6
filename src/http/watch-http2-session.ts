import { constants, type Http2Session } from "node:http2";
import type { Duplex } from "node:stream";

/** How often each session is looked at, in milliseconds. */
export const LOOK_MS = 400;
/** Between two looks an operation of the system may be over that its callback has not told yet: it takes another, so much later. */
export const SECOND_LOOK_MS = 50;

/** What libuv has of a socket. `_parent`: the one below TLS. */
interface StreamHandle {
  /** 0: it was not read until now. */
  readStart(): number;
  readStop(): number;
  readonly writeQueueSize: number;
  readonly _parent?: StreamHandle;
}

const watched = new Map<Http2Session, Duplex>();
let timer: NodeJS.Timeout | undefined;

/**
 * Ends a session, with its streams and its socket, whose connection Node.js has given up without a word: after nghttp2's own GOAWAY
 * for a bad frame (Node.js 20), and over TLS when the system refuses a write. RFC 9113 section 5.4.1 has it closed then.
 */
export function watchHttp2Session(session: Http2Session, socket: Duplex): void {
  if (session.destroyed) return;
  watched.set(session, socket);
  session.once("close", () => watched.delete(session));
  timer ??= setInterval(look, LOOK_MS).unref();
}

function look(): void {
  if (watched.size === 0) {
    clearInterval(timer);
    timer = undefined;
  }
  const suspects = [...watched].filter(([, socket]) => isForsaken(socket));
  if (suspects.length > 0) setTimeout(() => lookAgain(suspects), SECOND_LOOK_MS).unref();
}

function lookAgain(suspects: readonly [Http2Session, Duplex][]): void {
  for (const [session, socket] of suspects) {
    if (!watched.has(session) || !isForsaken(socket)) continue;
    session.destroy(undefined, constants.NGHTTP2_PROTOCOL_ERROR);
    // What is closing waits for its socket's end, which a failed write never brings.
    socket.destroy();
  }
}

/** A session reads, or waits until the system has taken what it wrote. One that does neither does nothing any more. */
function isForsaken(socket: Duplex): boolean {
  const { _handle: handle } = socket as Duplex & { readonly _handle?: StreamHandle | null };
  if (socket.destroyed || typeof handle?.readStart !== "function" || handle.readStart() !== 0) return false;
  handle.readStop();
  let lowest = handle;
  while (lowest._parent !== undefined) lowest = lowest._parent;
  return lowest.writeQueueSize === 0;
}
