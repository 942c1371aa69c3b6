import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { HeaderNames } from "@sluice/client/internal/http/header-edit";
import type { HeaderList } from "@sluice/client/internal/http/header-list";
import { upgradeEdit } from "../http/hop-by-hop.ts";
import { http1Lines } from "../http/http2-headers.ts";
import { closeWhenSent } from "../http/watch-http2-session.ts";
import type { Http2Request } from "./http2-connections.ts";

const NOT_IMPLEMENTED = 501;
const KEY = new HeaderNames(["sec-websocket-key"]);

/**
 * Presents a WebSocket on an HTTP/2 stream (extended CONNECT, RFC 8441) as the equivalent HTTP/1.1
 * upgrade. For any other CONNECT answers itself and returns undefined: plain CONNECT would make the
 * gateway a forward proxy. `takingMs`: how long the client may take to read that answer.
 */
export function webSocketRequestOf(
  { stream, pseudo, rawHeaders, socket }: Http2Request,
  takingMs: number,
): RequestHead | undefined {
  stream.on("error", () => {});
  // A reset without an error looks like a half-close, or, if unread, like nothing. It must end both
  // directions.
  stream.once("aborted", () => setImmediate(() => stream.destroy()));
  if (pseudo[":protocol"] !== "websocket") {
    stream.respond({ ":status": NOT_IMPLEMENTED, "content-type": "text/plain; charset=utf-8" });
    stream.end("only websocket is served by extended CONNECT\n");
    closeWhenSent(stream, takingMs);
    return undefined;
  }
  const lines = http1Lines(rawHeaders, pseudo[":authority"]);
  const edit = upgradeEdit(lines, "websocket");
  // HTTP/2 sends no key, since the stream itself proves that the client meant a WebSocket (RFC 8441
  // section 5). Nodes need one.
  edit.drop(KEY);
  edit.add("Sec-WebSocket-Key", randomBytes(16).toString("base64"));
  const headers = edit.lines();
  return { method: "GET", target: pseudo[":path"] ?? "", headers, socket };
}

/**
 * A request's head, independent of the HTTP version. A WebSocket on an HTTP/2 stream appears as the
 * equivalent upgrade.
 */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  readonly headers: HeaderList;
  /** The request's connection. */
  readonly socket: Duplex;
}
