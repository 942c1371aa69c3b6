import type { InformationEvent, ServerResponse } from "node:http";
import { headerListOf } from "./header-list.ts";
import { withoutHopByHop } from "./hop-by-hop.ts";

/**
 * Gives an interim response (103 Early Hints and others, RFC 8297) to the client as it came. 100 is not among them: it
 * belongs to `Expect`, which each hop handles by itself. HTTP/1.0 clients know no interim responses.
 *
 * Written straight to the socket, because Node's writeEarlyHints lower-cases names and refuses what it does not know.
 * `response.socket` is set only while the response is the connection's current one, so pipelined answers keep order.
 */
export function relayInterimResponse(interim: InformationEvent, response: ServerResponse): void {
  const { socket } = response;
  if (interim.statusCode === 100 || response.headersSent || socket === null) return;
  if (response.req.httpVersionMajor !== 1 || response.req.httpVersionMinor === 0) return;
  const lines = withoutHopByHop(headerListOf(interim.rawHeaders)).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  socket.write(`HTTP/1.1 ${interim.statusCode} ${interim.statusMessage}\r\n${lines.join("")}\r\n`, "latin1");
}
