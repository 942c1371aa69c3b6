import { readUint32, writeUint32 } from "../../bytes/index.ts";
import { FLAG, FRAME_HEADER_BYTES, FRAME_TYPE, LOW_31_BITS } from "../constants.ts";
import type { SpdyHeaders } from "../header-block.ts";
import { allocateControlFrame, requireStreamId } from "./control-layout.ts";

/** Adds headers to a stream (SPDY/3 section 2.6.7). Never send it: it blocks one of spdystream's five workers until the stream ends. */
export interface HeadersFrame {
  readonly type: "HEADERS";
  readonly streamId: number;
  /** The sender will send no DATA after it. */
  readonly fin: boolean;
  /** Empty if the decoder skips header blocks. */
  readonly headers: SpdyHeaders;
}

// |X|       stream id (31)           |
// |    compressed header block       |
export const HEADERS_FIXED_BYTES = 4;

export function decodeHeaders(flags: number, payload: Uint8Array, headers: SpdyHeaders): HeadersFrame {
  return {
    type: "HEADERS",
    streamId: requireStreamId("HEADERS", readUint32(payload, 0) & LOW_31_BITS),
    fin: (flags & FLAG.FIN) !== 0,
    headers,
  };
}

export function encodeHeaders(frame: HeadersFrame, headerBlock: Uint8Array): Uint8Array {
  const flags = frame.fin ? FLAG.FIN : 0;
  const bytes = allocateControlFrame(FRAME_TYPE.HEADERS, flags, HEADERS_FIXED_BYTES + headerBlock.length);
  writeUint32(bytes, FRAME_HEADER_BYTES, frame.streamId);
  bytes.set(headerBlock, FRAME_HEADER_BYTES + HEADERS_FIXED_BYTES);
  return bytes;
}
