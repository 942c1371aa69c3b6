import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { ACCEPT_GUID } from "../../../protocols/websocket/index.ts";
import { afterHead } from "../http/loopback.ts";

/**
 * Answers the first request with a 101 to WebSocket and this subprotocol, whatever the client
 * offered.
 */
export function switchingWebSocket(
  subprotocol: string,
  accept?: string,
  onSwitched: (socket: Socket) => void = () => {},
): (socket: Socket) => void {
  return (socket) => {
    afterHead(socket, (request) => {
      const key = /^sec-websocket-key: (.*)\r$/im.exec(request.toString("latin1"))?.[1] ?? "";
      const right = createHash("sha1")
        .update(key + ACCEPT_GUID)
        .digest("base64");
      const protocolLine = subprotocol === "" ? "" : `Sec-WebSocket-Protocol: ${subprotocol}\r\n`;
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept ?? right}\r\n${protocolLine}\r\n`,
      );
      onSwitched(socket);
    });
  };
}
