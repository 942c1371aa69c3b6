import { NOTHING, readUint24, readUint32 } from "../bytes/index.ts";
import { ERROR_CODE, Http2Error } from "./http2-error.ts";
import { FLAGS, FRAME, FRAME_HEADER_BYTES } from "./limits.ts";

export interface FrameHandler {
  /** Every frame, before its payload is read or skipped. May throw. */
  onFrameStart(type: number, flags: number, streamId: number, bytes: number): void;
  /** A part of a DATA frame's data, without padding: a slice of the chunk. */
  onData(streamId: number, part: Uint8Array): void;
  /** The DATA frame has ended. */
  onDataEnd(streamId: number, isEnd: boolean): void;
  /** Any other known frame, complete. The payload may be overwritten after the call. */
  onFrame(type: number, flags: number, streamId: number, payload: Uint8Array): void;
}

/** `HTTP/1.1 ` has exactly the length of a frame header. */
const HTTP1_START = "HTTP/1.1 ";

/**
 * Splits bytes into frames as they arrive (RFC 9113 section 4.1). Throws Http2Error, and any
 * exception of its handler.
 */
export class FrameDecoder {
  readonly #handler: FrameHandler;
  readonly #maxFrameBytes: number;
  readonly #head = new Uint8Array(FRAME_HEADER_BYTES);
  #headBytes = 0;
  #type = 0;
  #flags = 0;
  #streamId = 0;
  /** Bytes of the frame's payload that are still to come; for DATA without its padding. */
  #restBytes = 0;
  #paddingBytes = 0;
  /** DATA's first byte is the padding's length. */
  #isPadLengthNext = false;
  /** Assembles a frame that arrives in parts. */
  #payload = NOTHING;

  constructor(handler: FrameHandler, maxFrameBytes: number) {
    this.#handler = handler;
    this.#maxFrameBytes = maxFrameBytes;
  }

  /** True if no frame is incomplete. */
  get isBetweenFrames(): boolean {
    return this.#headBytes === 0;
  }

  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#headBytes < FRAME_HEADER_BYTES) {
        while (at < chunk.length && this.#headBytes < FRAME_HEADER_BYTES) {
          this.#head[this.#headBytes++] = chunk[at++] as number;
        }
        if (this.#headBytes === FRAME_HEADER_BYTES) this.#begin();
        continue;
      }
      at = this.#type === FRAME.DATA ? this.#takeData(chunk, at) : this.#takeFrame(chunk, at);
    }
  }

  #begin(): void {
    const head = this.#head;
    this.#restBytes = readUint24(head, 0);
    this.#type = head[3] as number;
    this.#flags = head[4] as number;
    this.#streamId = readUint32(head, 5) & 0x7fff_ffff;
    if (this.#restBytes > this.#maxFrameBytes) {
      const isHttp1 = head.every((byte, index) => byte === HTTP1_START.charCodeAt(index));
      const fault = isHttp1 ? "looks-like-http1" : "frame-too-large";
      throw new Http2Error(fault, ERROR_CODE.FRAME_SIZE_ERROR, "frame too large");
    }
    this.#handler.onFrameStart(this.#type, this.#flags, this.#streamId, this.#restBytes);
    if (this.#type !== FRAME.DATA) {
      if (this.#restBytes === 0) this.#finishFrame(NOTHING);
      return;
    }
    this.#paddingBytes = 0;
    this.#isPadLengthNext = (this.#flags & FLAGS.PADDED) !== 0;
    if (this.#isPadLengthNext && this.#restBytes === 0) throw badPadding();
    this.#endDataWhenDone();
  }

  #takeData(chunk: Uint8Array, start: number): number {
    let at = start;
    if (this.#isPadLengthNext) {
      this.#isPadLengthNext = false;
      this.#paddingBytes = chunk[at++] as number;
      this.#restBytes -= 1 + this.#paddingBytes;
      if (this.#restBytes < 0) throw badPadding();
    } else if (this.#restBytes > 0) {
      const end = Math.min(chunk.length, at + this.#restBytes);
      this.#restBytes -= end - at;
      this.#handler.onData(this.#streamId, chunk.subarray(at, end));
      at = end;
    } else {
      const end = Math.min(chunk.length, at + this.#paddingBytes);
      this.#paddingBytes -= end - at;
      at = end;
    }
    this.#endDataWhenDone();
    return at;
  }

  #endDataWhenDone(): void {
    if (this.#restBytes > 0 || this.#paddingBytes > 0 || this.#isPadLengthNext) return;
    this.#headBytes = 0;
    this.#handler.onDataEnd(this.#streamId, (this.#flags & FLAGS.END_STREAM) !== 0);
  }

  #takeFrame(chunk: Uint8Array, at: number): number {
    const end = Math.min(chunk.length, at + this.#restBytes);
    const part = chunk.subarray(at, end);
    const isWhole = part.length === this.#restBytes && this.#payload.length === 0;
    this.#restBytes -= part.length;
    if (isWhole) {
      this.#finishFrame(part);
      return end;
    }
    if (this.#payload.length === 0) this.#payload = new Uint8Array(part.length + this.#restBytes);
    this.#payload.set(part, this.#payload.length - this.#restBytes - part.length);
    if (this.#restBytes === 0) {
      const payload = this.#payload;
      this.#payload = NOTHING;
      this.#finishFrame(payload);
    }
    return end;
  }

  #finishFrame(payload: Uint8Array): void {
    this.#headBytes = 0;
    if (this.#type <= FRAME.CONTINUATION) {
      this.#handler.onFrame(this.#type, this.#flags, this.#streamId, payload);
    }
  }
}

function badPadding(): Http2Error {
  return new Http2Error("connection", ERROR_CODE.PROTOCOL_ERROR, "more padding than payload");
}
