import { constants, type Http2Session, type ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { cancelStream, http2Failure } from "@sluice/client/internal/net/abort-socket";

/** How often each session is checked, in milliseconds. */
const LOOK_MS = 400;
/**
 * A finished write's callback may still be pending at the first look, so a second look follows this
 * much later.
 */
const SECOND_LOOK_MS = 50;

/** libuv's handle of a socket. `_parent`: the handle below TLS. */
interface StreamHandle {
  /** 0: reading was stopped before. */
  readStart(): number;
  readStop(): number;
  readonly writeQueueSize: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
  readonly _parent?: StreamHandle;
}

const FAILURE = "a frame broke the protocol, or the system refused a write";

const watched = new Map<Http2Session, Duplex>();
let timer: NodeJS.Timeout | undefined;

/**
 * Ends a session, its streams and its socket when Node.js has silently given up on the connection:
 * after nghttp2's own GOAWAY for a bad frame (Node.js 20), and over TLS when the system refuses a
 * write. RFC 9113 section 5.4.1 requires closing it.
 */
export function watchHttp2Session(session: Http2Session, socket: Duplex): void {
  if (session.destroyed) return;
  if (session.type === constants.NGHTTP2_SESSION_SERVER) endBetweenReads(session, socket);
  keepBehindItsStreams(session);
  watched.set(session, socket);
  session.once("close", () => watched.delete(session));
  timer ??= setInterval(look, LOOK_MS).unref();
}

/**
 * Node.js 20 aborts if a session is collected before a stream that holds fields of an unfinished
 * header block. Node.js frees streams at the end of the turn in which they are destroyed.
 */
function keepBehindItsStreams(session: Http2Session): void {
  const handle = nativeHandleOf(session);
  session.once("close", () => setImmediate(() => setImmediate(() => void handle)));
}

/** How often a closing session's queue is checked for its GOAWAY, in milliseconds. */
const GOAWAY_LOOK_MS = 20;

const closing = new WeakSet<Http2Session>();

/** True from `session.close()` on; `session.closed` is false until GOAWAY was sent. */
export function isClosing(session: Http2Session): boolean {
  return session.closed || closing.has(session);
}

/**
 * Two defects of node:http2 let a client's frames break the process. Node.js 22 aborts at DATA of a
 * stream that began after its session was destroyed, in the same read; a GOAWAY with an error
 * destroys it. Node.js 20 (22 before 22.23.2) refuses a stream behind `close` by a reset, which sends
 * the GOAWAY in the middle of a read. That frees the stream, and nghttp2 writes into its memory
 * (nodejs/node#64113).
 */
function endBetweenReads(session: Http2Session, socket: Duplex): void {
  const destroy = session.destroy.bind(session) as (error?: Error | number, code?: number) => void;
  session.destroy = (error?: Error | number, code?: number) => void setImmediate(destroy, error, code);
  const close = session.close.bind(session);
  const closeWhenGoawaySent = (): void => {
    if (session.destroyed) return;
    if (!socket.destroyed && (session.state.outboundQueueSize ?? 0) > 0) {
      setTimeout(closeWhenGoawaySent, GOAWAY_LOOK_MS).unref();
      return;
    }
    // It would be sent again.
    session.goaway = () => {};
    close();
  };
  session.close = () => {
    // node:http2 destroys the session next.
    if (socket.destroyed) close();
    if (isClosing(session) || session.destroyed) return;
    closing.add(session);
    session.goaway();
    setImmediate(closeWhenGoawaySent);
  };
}

const resting = new WeakSet<Duplex>();

/** Whether nothing is read from a session's socket. node:http2 offers no way. */
export function setResting(socket: Duplex, isResting: boolean): void {
  if (isResting) resting.add(socket);
  else resting.delete(socket);
  const handle = handleOf(socket);
  if (isResting) handle?.readStop();
  else handle?.readStart();
}

function handleOf(socket: Duplex): StreamHandle | undefined {
  const { _handle: handle } = socket as Duplex & { readonly _handle?: StreamHandle | null };
  return typeof handle?.readStart === "function" ? handle : undefined;
}

function look(): void {
  if (watched.size === 0) {
    clearInterval(timer);
    timer = undefined;
  }
  const suspects = [...watched].flatMap(([session, socket]) => {
    const bytes = bytesIfStill(socket);
    return bytes === undefined ? [] : [{ session, socket, bytes }];
  });
  if (suspects.length > 0) setTimeout(() => lookAgain(suspects), SECOND_LOOK_MS).unref();
}

interface Suspect {
  readonly session: Http2Session;
  readonly socket: Duplex;
  readonly bytes: number;
}

function lookAgain(suspects: readonly Suspect[]): void {
  for (const { session, socket, bytes } of suspects) {
    if (!watched.has(session) || bytesIfStill(socket) !== bytes) continue;
    session.destroy(http2Failure(FAILURE), constants.NGHTTP2_PROTOCOL_ERROR);
    // A closing session waits for its socket's end, which a failed write never brings. Sessions of
    // listeners are destroyed at the end of the turn.
    setImmediate(() => socket.destroy());
  }
}

/**
 * The bytes carried so far by a connection that neither reads nor waits for the kernel to take its
 * writes; undefined for a live one. A busy one may seem idle between two writes, but its count
 * grows.
 */
function bytesIfStill(socket: Duplex): number | undefined {
  const handle = handleOf(socket);
  if (socket.destroyed || resting.has(socket) || handle === undefined || handle.readStart() !== 0)
    return undefined;
  handle.readStop();
  let lowest = handle;
  while (lowest._parent !== undefined) lowest = lowest._parent;
  return lowest.writeQueueSize === 0 ? lowest.bytesRead + lowest.bytesWritten : undefined;
}

/**
 * Ends a listener's stream when it should, and never while nghttp2 reads it. Calls `onAborted` when the
 * client has reset the stream before its answer.
 */
export function watchHttp2Stream(stream: ServerHttp2Stream, onAborted: () => void): void {
  resetBetweenReads(stream);
  destroyWhenReset(stream, onAborted);
}

/**
 * Resets of the stream wait until nothing is read, since nghttp2 may free a stream that it is reading
 * (see `endBetweenReads`). The stream counts as destroyed at once.
 */
function resetBetweenReads(stream: ServerHttp2Stream): void {
  const { _destroy: destroy } = stream;
  const destroyLater: typeof destroy = (error, callback) => {
    const { session } = stream;
    const handle = nativeHandleOf(stream) as { onread: () => void } | undefined;
    // Neither sends a reset; the session's own destruction does not wait.
    if (stream.closed || session === undefined || session.destroyed || handle === undefined)
      return destroy.call(stream, error, callback);
    // node:http2 takes DATA of a destroyed stream for an error, and Node.js 22 throws.
    handle.onread = () => {};
    setImmediate(() => {
      // The client has reset it: its native part is gone, and a reset of that would abort the process.
      if (session.destroyed || isForgotten(Object.create(stream, { destroyed: { value: false } }))) {
        Object.defineProperty(stream, "closed", { value: true });
        stream.emit("aborted");
      }
      destroy.call(stream, error, callback);
    });
  };
  // As a plain property V8 keeps closed streams until it marks the whole heap.
  Object.defineProperty(stream, "_destroy", { value: destroyLater });
}

/** node:http2's key of a native part, the same for sessions and streams. */
let handleKey: symbol | undefined;

function nativeHandleOf(owner: Http2Session | ServerHttp2Stream): unknown {
  handleKey ??= Object.getOwnPropertySymbols(owner).find(({ description }) => description === "kHandle");
  return handleKey === undefined ? undefined : (owner as unknown as Record<symbol, unknown>)[handleKey];
}

/**
 * node:http2 takes a RST_STREAM with NO_ERROR for a complete answer and waits for writes that are
 * never sent. The stream and its backend connection would last as long as the client's connection.
 */
function destroyWhenReset(stream: ServerHttp2Stream, onAborted: () => void): void {
  const destroyIfForgotten = (): void => {
    if (!stream.destroyed && isForgotten(stream)) stream.destroy();
  };
  // nghttp2 still knows the stream while it reports the end.
  const closing = (): void => {
    if (stream.closed) setImmediate(destroyIfForgotten);
  };
  stream.on("aborted", () => {
    closing();
    onAborted();
  });
  stream.on("end", closing);
}

/** nghttp2 forgets closed streams, and node:http2 reports an unknown stream's state as idle. */
function isForgotten({ state }: ServerHttp2Stream): boolean {
  return (
    state.state === constants.NGHTTP2_STREAM_STATE_IDLE ||
    state.state === constants.NGHTTP2_STREAM_STATE_CLOSED
  );
}

/**
 * Closes the stream without an error once all was sent. It is cancelled if that takes `withinMs`;
 * absent: the caller does that.
 */
export function closeWhenSent(stream: ServerHttp2Stream, withinMs?: number): void {
  // A stream that is closed before and then destroyed gets no reset, and node:http2 loops for ever
  // when the client opens its window.
  const close = (): void => {
    if (!stream.destroyed) stream.close(constants.NGHTTP2_NO_ERROR);
  };
  const closeBetweenReads = (): void => void setImmediate(close);
  if (stream.writableFinished) {
    closeBetweenReads();
    return;
  }
  stream.once("finish", closeBetweenReads);
  if (withinMs === undefined) return;
  const timer = setTimeout(() => cancelStream(stream), withinMs).unref();
  stream.once("close", () => clearTimeout(timer));
}
