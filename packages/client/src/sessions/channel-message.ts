import { channelByte, encodeBase64, type RemoteCommandSpec } from "@sluice/protocols/remotecommand";
import { OPCODE } from "@sluice/protocols/websocket";
import type { WebSocketConnection } from "./websocket-connection.ts";

/** Sends a message on a channel: as text for base64 subprotocols, otherwise as binary. */
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
