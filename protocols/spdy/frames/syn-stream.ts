import { readUint32, writeUint32 } from "../../bytes/index.ts";
import { FLAG, FRAME_HEADER_BYTES, FRAME_TYPE, LOW_31_BITS } from "../constants.ts";
import type { SpdyHeaders } from "../header-block.ts";
import { allocateControlFrame, requireStreamId } from "./control-layout.ts";

/** Opens a stream (SPDY/3 section 2.6.1). */
export interface SynStreamFrame {
  readonly type: "SYN_STREAM";
  readonly streamId: number;
  /** 0 for an independent stream; Kubernetes uses no others. */
  readonly associatedStreamId: number;
  /** 0 (first) to 7 (last). */
  readonly priority: number;
  /** The opener will send no DATA. */
  readonly fin: boolean;
  /** The other side may send no DATA. */
  readonly unidirectional: boolean;
  readonly headers: SpdyHeaders;
}

// |X|       stream id (31)           |
// |X|  associated stream id (31)     |
// | priority (3) | 0 (5) | slot (8)  |
// |    compressed header block       |
export const SYN_STREAM_FIXED_BYTES = 10;

export function decodeSynStream(flags: number, payload: Uint8Array, headers: SpdyHeaders): SynStreamFrame {
  return {
    type: "SYN_STREAM",
    streamId: requireStreamId("SYN_STREAM", readUint32(payload, 0) & LOW_31_BITS),
    associatedStreamId: readUint32(payload, 4) & LOW_31_BITS,
    priority: (payload[8] as number) >>> 5,
    fin: (flags & FLAG.FIN) !== 0,
    unidirectional: (flags & FLAG.UNIDIRECTIONAL) !== 0,
    headers,
  };
}

export function encodeSynStream(frame: SynStreamFrame, headerBlock: Uint8Array): Uint8Array {
  const flags = (frame.fin ? FLAG.FIN : 0) | (frame.unidirectional ? FLAG.UNIDIRECTIONAL : 0);
  const bytes = allocateControlFrame(
    FRAME_TYPE.SYN_STREAM,
    flags,
    SYN_STREAM_FIXED_BYTES + headerBlock.length,
  );
  writeUint32(bytes, FRAME_HEADER_BYTES, frame.streamId);
  writeUint32(bytes, FRAME_HEADER_BYTES + 4, frame.associatedStreamId);
  bytes[FRAME_HEADER_BYTES + 8] = frame.priority << 5;
  bytes.set(headerBlock, FRAME_HEADER_BYTES + SYN_STREAM_FIXED_BYTES);
  return bytes;
}
