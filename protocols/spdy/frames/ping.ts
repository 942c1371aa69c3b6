import { readUint32, writeUint32 } from "../../bytes/index.ts";
import { ProtocolError } from "../../protocol-error.ts";
import { FRAME_HEADER_BYTES, FRAME_TYPE } from "../constants.ts";
import { allocateControlFrame, requireNoFlags } from "./control-layout.ts";

/** Asks whether the peer is there, or answers (SPDY/3 section 2.6.5). A client's ids are odd, a server's even. */
export interface PingFrame {
  readonly type: "PING";
  readonly id: number;
}

export const PING_BYTES = 4;

export function decodePing(flags: number, payload: Uint8Array): PingFrame {
  requireNoFlags("PING", flags);
  const id = readUint32(payload, 0);
  if (id === 0) throw new ProtocolError("malformed-frame", "PING with id 0");
  return { type: "PING", id };
}

export function encodePing(frame: PingFrame): Uint8Array {
  const bytes = allocateControlFrame(FRAME_TYPE.PING, 0, PING_BYTES);
  writeUint32(bytes, FRAME_HEADER_BYTES, frame.id);
  return bytes;
}
