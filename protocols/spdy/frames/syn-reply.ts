import { readUint32, writeUint32 } from "../../bytes/index.ts";
import { FLAG, FRAME_HEADER_BYTES, FRAME_TYPE, LOW_31_BITS } from "../constants.ts";
import type { SpdyHeaders } from "../header-block.ts";
import { allocateControlFrame, requireStreamId } from "./control-layout.ts";

/** Accepts a stream (SPDY/3 section 2.6.2). Kubernetes' servers never put headers in it. */
export interface SynReplyFrame {
  readonly type: "SYN_REPLY";
  readonly streamId: number;
  /** The sender will send no DATA after it. */
  readonly fin: boolean;
  /** Empty if the decoder skips header blocks. */
  readonly headers: SpdyHeaders;
}

// |X|       stream id (31)           |
// |    compressed header block       |
export const SYN_REPLY_FIXED_BYTES = 4;

export function decodeSynReply(flags: number, payload: Uint8Array, headers: SpdyHeaders): SynReplyFrame {
  return {
    type: "SYN_REPLY",
    streamId: requireStreamId("SYN_REPLY", readUint32(payload, 0) & LOW_31_BITS),
    fin: (flags & FLAG.FIN) !== 0,
    headers,
  };
}

export function encodeSynReply(frame: SynReplyFrame, headerBlock: Uint8Array): Uint8Array {
  const flags = frame.fin ? FLAG.FIN : 0;
  const bytes = allocateControlFrame(FRAME_TYPE.SYN_REPLY, flags, SYN_REPLY_FIXED_BYTES + headerBlock.length);
  writeUint32(bytes, FRAME_HEADER_BYTES, frame.streamId);
  bytes.set(headerBlock, FRAME_HEADER_BYTES + SYN_REPLY_FIXED_BYTES);
  return bytes;
}
