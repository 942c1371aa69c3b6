import { channelByte, encodeBase64, type RemoteCommandSpec } from "../../../protocols/remotecommand/index.ts";
import { MAX_FRAME_HEADER_BYTES, OPCODE, writeFrameHeader } from "../../../protocols/websocket/index.ts";
import type { WebSocketConnection } from "./websocket-connection.ts";

/** Sends one message for a channel: binary, or text where the subprotocol is a base64 one. */
export function sendChannelMessage(
  webSocket: WebSocketConnection,
  framing: Pick<RemoteCommandSpec, "isBase64">,
  channel: number,
  payload: Uint8Array,
): void {
  const prefix = channelByte(channel, framing);
  if (framing.isBase64) webSocket.sendMessage(prefix, encodeBase64(payload), OPCODE.TEXT);
  else webSocket.sendMessage(prefix, payload);
}

/** The frame of a server's message for a channel, where no connection of ours frames it. */
export function encodeChannelMessage(
  framing: Pick<RemoteCommandSpec, "isBase64">,
  channel: number,
  payload: Uint8Array,
): Uint8Array {
  const body = framing.isBase64 ? encodeBase64(payload) : payload;
  const header = new Uint8Array(MAX_FRAME_HEADER_BYTES);
  const opcode = framing.isBase64 ? OPCODE.TEXT : OPCODE.BINARY;
  const headerBytes = writeFrameHeader(header, 0, opcode, 1 + body.byteLength, true);
  return Buffer.concat([header.subarray(0, headerBytes), Buffer.of(channelByte(channel, framing)), body]);
}
