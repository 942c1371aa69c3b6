import type { ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";

/** A client on one stream of an HTTP/2 connection, where others have a connection of their own (RFC 8441). */
export function isHttp2Stream(client: Duplex): client is ServerHttp2Stream {
  return "rstCode" in client;
}
