import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";

const ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const CLOSE_1000 = Buffer.of(0x88, 2, 0x03, 0xe8);

/**
 * A node that accepts WebSocket v5, sends these messages and closes: bytes for ScriptedKubelet's
 * `refuse`, as latin1.
 */
export function webSocketAnswer(
  request: IncomingMessage,
  messages: readonly (string | Uint8Array)[],
): string {
  const accept = createHash("sha1")
    .update(request.headers["sec-websocket-key"] + ACCEPT_GUID)
    .digest("base64");
  const head = [
    "HTTP/1.1 101 Switching Protocols",
    "Connection: Upgrade",
    "Upgrade: websocket",
    `Sec-WebSocket-Accept: ${accept}`,
    "Sec-WebSocket-Protocol: v5.channel.k8s.io",
  ].join("\r\n");
  const frames = Buffer.concat([...messages.map(frameOf), CLOSE_1000]);
  return `${head}\r\n\r\n${frames.toString("latin1")}`;
}

/** A Status as a kubelet's only message, on the error channel. */
export function statusMessage(status: object): Buffer {
  return Buffer.concat([Buffer.of(3), Buffer.from(JSON.stringify(status))]);
}

function frameOf(message: string | Uint8Array): Buffer {
  const payload = Buffer.from(message);
  const header = payload.byteLength < 126 ? Buffer.of(0x82, payload.byteLength) : Buffer.of(0x82, 126, 0, 0);
  if (payload.byteLength >= 126) header.writeUInt16BE(payload.byteLength, 2);
  return Buffer.concat([header, payload]);
}
