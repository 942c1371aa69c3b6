import { writeUint24, writeUint32 } from "../../bytes/index.ts";
import { ProtocolError } from "../../protocol-error.ts";
import { CONTROL_BIT, FRAME_HEADER_BYTES, type FRAME_TYPE, SPDY_VERSION } from "../constants.ts";

// +----------------------------------+
// |1|  version (15)  |   type (16)   |
// | flags (8) |     length (24)      |
// |            payload               |
// +----------------------------------+

export type ControlFrameType = (typeof FRAME_TYPE)[keyof typeof FRAME_TYPE];

/** A control frame with a complete header and a zeroed payload. */
export function allocateControlFrame(
  type: ControlFrameType,
  flags: number,
  payloadBytes: number,
): Uint8Array {
  const frame = new Uint8Array(FRAME_HEADER_BYTES + payloadBytes);
  frame[0] = CONTROL_BIT;
  frame[1] = SPDY_VERSION;
  frame[3] = type;
  frame[4] = flags;
  writeUint24(frame, 5, payloadBytes);
  return frame;
}

/** A control frame without flags and with a payload of two 32-bit words. */
export function encodeTwoWords(type: ControlFrameType, first: number, second: number): Uint8Array {
  const frame = allocateControlFrame(type, 0, 8);
  writeUint32(frame, FRAME_HEADER_BYTES, first);
  writeUint32(frame, FRAME_HEADER_BYTES + 4, second);
  return frame;
}

/** PING, GOAWAY and WINDOW_UPDATE define no flags; spdystream, too, ends the session over any. */
export function requireNoFlags(name: string, flags: number): void {
  if (flags !== 0) throw new ProtocolError("malformed-frame", `${name} with flags ${flags}`);
}

export function requireStreamId(name: string, streamId: number): number {
  if (streamId === 0) throw new ProtocolError("malformed-frame", `${name} for stream 0`);
  return streamId;
}
