import type { Http2Session, Http2Stream, ServerHttp2Stream } from "node:http2";
import { Socket } from "node:net";
import { addAbortSignal, type Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/**
 * Breaks a connection visibly. Over plain TCP `destroy` alone sends FIN, which looks like a proper
 * end; over TLS the peer notices the missing close_notify.
 */
export function abortSocket(socket: Duplex): void {
  if (socket instanceof Socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
  // A WebSocket on an HTTP/2 stream: RFC 8441 section 5 maps a broken connection to CANCEL.
  else if (isHttp2Stream(socket)) cancelStream(socket);
  else socket.destroy();
}

/**
 * Destroys the socket; a stream gets CANCEL, since without an error node:http2 would reset it with
 * NO_ERROR.
 */
export function destroySocket(socket: Duplex): void {
  if (isHttp2Stream(socket)) cancelStream(socket);
  else socket.destroy();
}

const ABORTED = AbortSignal.abort();

/**
 * Sends RST_STREAM with CANCEL, without the END_STREAM that `close` sends first. node:http2 turns an
 * AbortError into CANCEL.
 */
export function cancelStream(stream: Http2Stream): void {
  if (stream.destroyed) return;
  forgetTimer(stream);
  addAbortSignal(ABORTED, stream);
}

/** The same with INTERNAL_ERROR: the exchange failed rather than being cancelled. */
export function breakStream(stream: Http2Stream): void {
  forgetTimer(stream);
  stream.destroy(new Error("the exchange was cut short"));
}

/**
 * node:http2 keeps the timer of a stream or session that is destroyed, and with it the connection's
 * memory. Its `setTimeout` ignores destroyed ones, so call this at their end or before.
 */
export function forgetTimer(owner: Http2Stream | Http2Session): void {
  if (owner.destroyed) owner.setTimeout.call(Object.create(owner, { destroyed: { value: false } }), 0);
  else owner.setTimeout(0);
}

const HTTP2_FAILURE = "ERR_HTTP2_ERROR";
const HTTP2_STREAM_FAILURE = "ERR_HTTP2_STREAM_ERROR";

/**
 * An error for the streams of a connection that failed, other than node:http2's own. See
 * `clientFailureOf`.
 */
export function http2Failure(message: string): Error {
  return Object.assign(new Error(message), { code: HTTP2_FAILURE });
}

/**
 * What the log says of a client's connection that broke. node:http2's texts, such as "Protocol error",
 * do not say of what.
 */
export function clientFailureOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === HTTP2_STREAM_FAILURE) return `the client's HTTP/2 stream failed: ${message}`;
  return code === HTTP2_FAILURE ? `the client's HTTP/2 connection failed: ${message}` : message;
}

/** True for a stream of an HTTP/2 connection (RFC 8441), false for a connection of the client's own. */
export function isHttp2Stream(client: Duplex): client is ServerHttp2Stream {
  return "rstCode" in client;
}
