import type { Duplex } from "node:stream";
import { type HeaderList, withoutHeaders } from "@sluice/client/internal/http/header-list";
import { isHttp2Stream } from "@sluice/client/internal/net/abort-socket";
import { http2ResponseHeaders } from "../http2-headers.ts";

/** The status of an answer that switches protocols. An HTTP/2 stream has no 101 (RFC 8441 section 5). */
export function switchedStatusOf(client: Duplex): 101 | 200 {
  return isHttp2Stream(client) ? 200 : 101;
}

/**
 * Tells a client that its connection switches protocols now. `headers` are those of a 101. An HTTP/2
 * stream gets them with a 200, without connection headers and without the proof of a key, which it
 * never sent (RFC 8441 section 5).
 */
export function answerSwitched(
  client: Duplex,
  headers: HeaderList,
  statusMessage = "Switching Protocols",
): void {
  if (!isHttp2Stream(client)) {
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    client.write(`HTTP/1.1 101 ${statusMessage}\r\n${lines}\r\n`, "latin1");
  } else if (!client.destroyed && !client.closed) {
    client.respond(http2ResponseHeaders(200, withoutHeaders(headers, ["sec-websocket-accept"])));
  }
}
