import { readUint32, writeUint32 } from "../../bytes/index.ts";
import { ProtocolError } from "../../protocol-error.ts";
import { FLAG, FRAME_HEADER_BYTES, FRAME_TYPE, LOW_31_BITS } from "../constants.ts";
import type { SpdyHeaders } from "../header-block.ts";
import { allocateControlFrame, encodeTwoWords, requireNoFlags, requireStreamId } from "./control-layout.ts";

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

/** Would grant more bytes to send (SPDY/3.1 section 2.6.8). Kubernetes' peers have no flow control: see the README. */
export interface WindowUpdateFrame {
  readonly type: "WINDOW_UPDATE";
  /** 0 names the whole session. */
  readonly streamId: number;
  readonly deltaBytes: number;
}

// |X|       stream id (31)           |
// |X|    delta window size (31)      |
export const WINDOW_UPDATE_BYTES = 8;

export function decodeWindowUpdate(flags: number, payload: Uint8Array): WindowUpdateFrame {
  requireNoFlags("WINDOW_UPDATE", flags);
  return {
    type: "WINDOW_UPDATE",
    streamId: readUint32(payload, 0) & LOW_31_BITS,
    deltaBytes: readUint32(payload, 4) & LOW_31_BITS,
  };
}

export function encodeWindowUpdate(frame: WindowUpdateFrame): Uint8Array {
  return encodeTwoWords(FRAME_TYPE.WINDOW_UPDATE, frame.streamId, frame.deltaBytes);
}
