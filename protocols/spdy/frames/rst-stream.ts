import { readUint32 } from "../../bytes/index.ts";
import { ProtocolError } from "../../protocol-error.ts";
import { FRAME_TYPE, LOW_31_BITS } from "../constants.ts";
import { encodeTwoWords, requireStreamId } from "./control-layout.ts";

/** Ends a stream in both directions at once (SPDY/3 section 2.6.3). */
export interface RstStreamFrame {
  readonly type: "RST_STREAM";
  readonly streamId: number;
  /** One of `RST`, or an unknown number; never 0. */
  readonly status: number;
}

// |X|       stream id (31)           |
// |          status (32)             |
export const RST_STREAM_BYTES = 8;

/** Flags are ignored, as spdystream does. */
export function decodeRstStream(payload: Uint8Array): RstStreamFrame {
  const streamId = requireStreamId("RST_STREAM", readUint32(payload, 0) & LOW_31_BITS);
  const status = readUint32(payload, 4);
  if (status === 0) throw new ProtocolError("malformed-frame", "RST_STREAM with status 0");
  return { type: "RST_STREAM", streamId, status };
}

export function encodeRstStream(frame: RstStreamFrame): Uint8Array {
  return encodeTwoWords(FRAME_TYPE.RST_STREAM, frame.streamId, frame.status);
}
