import { readUint24, readUint32 } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";
import {
  CONTROL_BIT,
  FLAG,
  FRAME_HEADER_BYTES,
  FRAME_TYPE,
  LOW_31_BITS,
  type SpdyLimits,
} from "./constants.ts";
import { type ControlFrame, checkControlHeader } from "./frames/control-frame.ts";
import { type ControlFrameType, requireStreamId } from "./frames/control-layout.ts";
import { decodeGoAway, decodePing, decodeSettings } from "./frames/session-frames.ts";
import {
  decodeHeaders,
  decodeRstStream,
  decodeSynReply,
  decodeSynStream,
  decodeWindowUpdate,
  HEADERS_FIXED_BYTES,
  SYN_REPLY_FIXED_BYTES,
  SYN_STREAM_FIXED_BYTES,
} from "./frames/stream-frames.ts";
import { decodeHeaderBlock, NO_HEADERS, type SpdyHeaders } from "./header-block.ts";
import { HeaderDecompressor } from "./header-compression.ts";

export interface FrameHandler {
  /**
   * DATA payload as it arrives: a subarray of the pushed chunk, never copied or assembled. Only the
   * frame's last part has `fin`. An empty DATA frame with FIN gives one empty part; without FIN,
   * none.
   */
  onData(streamId: number, part: Uint8Array, fin: boolean): void;
  /** A complete control frame. It does not refer to the pushed chunk. */
  onControl(frame: ControlFrame): void;
}

const NO_BYTES = new Uint8Array(0);

/**
 * Decodes one direction's bytes into frames. Buffers at most one control frame of `maxControlFrameBytes` and 32
 * KiB of header history; DATA passes through.
 *
 * With `headerBlocks` "skip", the header blocks of SYN_REPLY and HEADERS stay compressed and unread, for clients
 * of Kubernetes' servers, which send them empty. A SYN_STREAM is then refused (`unsupported`), because its headers
 * could not be inflated.
 */
export class FrameDecoder {
  readonly #handler: FrameHandler;
  readonly #limits: SpdyLimits;
  readonly #controlFrames: ControlFrameDecoder;

  /** The start of a frame header that a chunk cuts off. */
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES);
  #headerBytes = 0;

  #dataStreamId = 0;
  #dataFin = false;
  #dataBytesLeft = 0;

  #controlType: ControlFrameType = FRAME_TYPE.PING;
  #controlFlags = 0;
  #controlBytesLeft = 0;
  /** The start of a payload that a chunk cuts off, in an array for the whole payload. */
  #controlPayload: Uint8Array | undefined;

  #isStopped = false;

  constructor(handler: FrameHandler, limits: SpdyLimits, headerBlocks: HeaderBlocks = "inflate") {
    this.#handler = handler;
    this.#limits = limits;
    this.#controlFrames = new ControlFrameDecoder(limits, headerBlocks);
  }

  /** True if the peer may disconnect here without truncating a frame. */
  get isBetweenFrames(): boolean {
    return this.#headerBytes === 0 && this.#dataBytesLeft === 0 && this.#controlBytesLeft === 0;
  }

  /** Ignores all pushed bytes from now on, including the rest of the current chunk. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Calls the handler for everything that the chunk completes. Throws ProtocolError; the decoder is
   * then stopped.
   */
  push(chunk: Uint8Array): void {
    try {
      this.#decode(chunk);
    } catch (error) {
      this.#isStopped = true;
      throw error;
    }
  }

  #decode(chunk: Uint8Array): void {
    let offset = 0;
    while (offset < chunk.length && !this.#isStopped) {
      if (this.#dataBytesLeft > 0) offset = this.#takeData(chunk, offset);
      else if (this.#controlBytesLeft > 0) offset = this.#takeControl(chunk, offset);
      else offset = this.#takeHeader(chunk, offset);
    }
  }

  #takeHeader(chunk: Uint8Array, offset: number): number {
    if (this.#headerBytes === 0 && chunk.length - offset >= FRAME_HEADER_BYTES) {
      this.#startFrame(chunk, offset);
      return offset + FRAME_HEADER_BYTES;
    }
    // spdystream writes the two words of a DATA header separately: chunks of 4 bytes are common.
    while (this.#headerBytes < FRAME_HEADER_BYTES && offset < chunk.length) {
      this.#header[this.#headerBytes++] = chunk[offset++] as number;
    }
    if (this.#headerBytes === FRAME_HEADER_BYTES) {
      this.#headerBytes = 0;
      this.#startFrame(this.#header, 0);
    }
    return offset;
  }

  #startFrame(header: Uint8Array, offset: number): void {
    const flags = header[offset + 4] as number;
    const payloadBytes = readUint24(header, offset + 5);
    if (((header[offset] as number) & CONTROL_BIT) === 0) {
      this.#startData(readUint32(header, offset) & LOW_31_BITS, (flags & FLAG.FIN) !== 0, payloadBytes);
      return;
    }
    const type = ((header[offset + 2] as number) << 8) | (header[offset + 3] as number);
    this.#controlType = checkControlHeader(type, payloadBytes, this.#limits);
    this.#controlFlags = flags;
    this.#controlBytesLeft = payloadBytes;
  }

  #startData(streamId: number, fin: boolean, payloadBytes: number): void {
    requireStreamId("DATA", streamId);
    if (payloadBytes > this.#limits.maxDataFrameBytes) {
      throw new ProtocolError("frame-too-large", `DATA of ${payloadBytes} bytes`);
    }
    this.#dataStreamId = streamId;
    this.#dataFin = fin;
    this.#dataBytesLeft = payloadBytes;
    if (payloadBytes === 0 && fin) this.#handler.onData(streamId, NO_BYTES, true);
  }

  #takeData(chunk: Uint8Array, offset: number): number {
    const end = Math.min(chunk.length, offset + this.#dataBytesLeft);
    this.#dataBytesLeft -= end - offset;
    const isLast = this.#dataBytesLeft === 0;
    this.#handler.onData(this.#dataStreamId, chunk.subarray(offset, end), isLast && this.#dataFin);
    return end;
  }

  #takeControl(chunk: Uint8Array, offset: number): number {
    const end = Math.min(chunk.length, offset + this.#controlBytesLeft);
    const part = chunk.subarray(offset, end);
    if (this.#controlPayload === undefined && part.length === this.#controlBytesLeft) {
      this.#controlBytesLeft = 0;
      this.#finishControl(part);
      return end;
    }
    const payload = this.#controlPayload ?? new Uint8Array(this.#controlBytesLeft);
    this.#controlPayload = payload;
    payload.set(part, payload.length - this.#controlBytesLeft);
    this.#controlBytesLeft -= part.length;
    if (this.#controlBytesLeft === 0) {
      this.#controlPayload = undefined;
      this.#finishControl(payload);
    }
    return end;
  }

  #finishControl(payload: Uint8Array): void {
    this.#handler.onControl(this.#controlFrames.decode(this.#controlType, this.#controlFlags, payload));
  }
}

/** What the decoder does with received header blocks; see `FrameDecoder`. */
export type HeaderBlocks = "inflate" | "skip";

/**
 * These describe the HTTP connection, not the stream (SPDY/3 section 3.2.1). spdystream refuses
 * them, too.
 */
const FORBIDDEN_IN_SYN_STREAM = ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding"];

/**
 * Decodes complete control payloads into frames. Stores one direction's inflation state and no
 * payload bytes.
 */
export class ControlFrameDecoder {
  readonly #limits: SpdyLimits;
  readonly #decompressor: HeaderDecompressor | undefined;

  constructor(limits: SpdyLimits, headerBlocks: HeaderBlocks) {
    this.#limits = limits;
    if (headerBlocks === "inflate") this.#decompressor = new HeaderDecompressor(limits.maxHeaderBlockBytes);
  }

  /** The caller has checked the payload's length with `checkControlHeader`. */
  decode(type: ControlFrameType, flags: number, payload: Uint8Array): ControlFrame {
    switch (type) {
      case FRAME_TYPE.SYN_STREAM:
        return decodeSynStream(flags, payload, this.#synStreamHeaders(payload));
      case FRAME_TYPE.SYN_REPLY:
        return decodeSynReply(flags, payload, this.#headers(payload.subarray(SYN_REPLY_FIXED_BYTES)));
      case FRAME_TYPE.HEADERS:
        return decodeHeaders(flags, payload, this.#headers(payload.subarray(HEADERS_FIXED_BYTES)));
      case FRAME_TYPE.RST_STREAM:
        return decodeRstStream(payload);
      case FRAME_TYPE.SETTINGS:
        return decodeSettings(payload, this.#limits);
      case FRAME_TYPE.PING:
        return decodePing(flags, payload);
      case FRAME_TYPE.GOAWAY:
        return decodeGoAway(flags, payload);
      case FRAME_TYPE.WINDOW_UPDATE:
        return decodeWindowUpdate(flags, payload);
    }
  }

  #synStreamHeaders(payload: Uint8Array): SpdyHeaders {
    if (this.#decompressor === undefined) {
      throw new ProtocolError("unsupported", "SYN_STREAM from a peer that is not expected to open streams");
    }
    const headers = this.#headers(payload.subarray(SYN_STREAM_FIXED_BYTES));
    const forbidden = FORBIDDEN_IN_SYN_STREAM.find((name) => headers.has(name));
    if (forbidden !== undefined) {
      throw new ProtocolError("malformed-header-block", `SYN_STREAM with the header ${forbidden}`);
    }
    return headers;
  }

  #headers(block: Uint8Array): SpdyHeaders {
    if (this.#decompressor === undefined) return NO_HEADERS;
    return decodeHeaderBlock(this.#decompressor.decompress(block), this.#limits);
  }
}
