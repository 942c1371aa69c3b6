import { channelByte, encodeBase64, type RemoteCommandSpec } from "../../protocols/remotecommand/index.ts";
import { MAX_FRAME_HEADER_BYTES, OPCODE, writeFrameHeader } from "../../protocols/websocket/index.ts";
import type { WebSocketConnection } from "../streaming/websocket-connection.ts";

/** Sends one message for a channel: binary, or text where the subprotocol is a base64 one. */
export function sendChannelMessage(
  webSocket: WebSocketConnection,
  framing: Pick<RemoteCommandSpec, "isBase64">,
  channel: number,
  payload: Uint8Array,
): void {
  const prefix = channelByte(channel, framing);
  if (!framing.isBase64) {
    webSocket.sendMessage(prefix, payload);
    return;
  }
  if (webSocket.isOver || !webSocket.socket.writable) return;
  const text = encodeBase64(payload);
  const frame = Buffer.allocUnsafe(MAX_FRAME_HEADER_BYTES + 1 + text.length);
  let length = writeFrameHeader(frame, 0, OPCODE.TEXT, 1 + text.length, true);
  frame[length++] = prefix;
  frame.set(text, length);
  webSocket.socket.write(frame.subarray(0, length + text.length));
}
