import { constants, type ServerHttp2Stream } from "node:http2";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/**
 * Breaks a connection so that the peer sees it broken. `destroy` alone sends FIN over plain TCP, which looks like a proper
 * end; over TLS the missing close_notify tells.
 */
export function abortSocket(socket: Duplex): void {
  if (socket instanceof Socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
  // A WebSocket on an HTTP/2 stream: RFC 8441 section 5 maps a broken connection to CANCEL.
  else if (isHttp2Stream(socket)) socket.close(constants.NGHTTP2_CANCEL);
  else socket.destroy();
}

/** A client on one stream of an HTTP/2 connection, where others have a connection of their own (RFC 8441). */
export function isHttp2Stream(client: Duplex): client is ServerHttp2Stream {
  return "rstCode" in client;
}
