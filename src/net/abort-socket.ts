import type { Http2Stream, ServerHttp2Stream } from "node:http2";
import { Socket } from "node:net";
import { addAbortSignal, type Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/**
 * Breaks a connection so that the peer sees it broken. `destroy` alone sends FIN over plain TCP, which looks like a proper
 * end; over TLS the missing close_notify tells.
 */
export function abortSocket(socket: Duplex): void {
  if (socket instanceof Socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
  // A WebSocket on an HTTP/2 stream: RFC 8441 section 5 maps a broken connection to CANCEL.
  else if (isHttp2Stream(socket)) cancelStream(socket);
  else socket.destroy();
}

/** `destroy`, and for a stream CANCEL: without an error node:http2 would reset it with NO_ERROR. */
export function destroySocket(socket: Duplex): void {
  if (isHttp2Stream(socket)) cancelStream(socket);
  else socket.destroy();
}

const ABORTED = AbortSignal.abort();

/** RST_STREAM with CANCEL, and no END_STREAM ahead as `close` sends. node:http2 takes an AbortError for CANCEL. */
export function cancelStream(stream: Http2Stream): void {
  if (stream.destroyed) return;
  forgetTimer(stream);
  addAbortSignal(ABORTED, stream);
}

/** The same with INTERNAL_ERROR: the exchange failed, and not because it was given up. */
export function breakStream(stream: Http2Stream): void {
  forgetTimer(stream);
  stream.destroy(new Error("the exchange was cut short"));
}

/** node:http2 leaves the timer of a stream that is destroyed before it is closed, and with it the whole exchange. */
function forgetTimer(stream: Http2Stream): void {
  stream.setTimeout(0);
}

/** A client on one stream of an HTTP/2 connection, where others have a connection of their own (RFC 8441). */
export function isHttp2Stream(client: Duplex): client is ServerHttp2Stream {
  return "rstCode" in client;
}
