import { NOTHING, readUint16, readUint24, readUint32 } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";
import { CONTROL_BIT, FLAG, FRAME_HEADER_BYTES, FRAME_TYPE, LOW_31_BITS } from "./constants.ts";
import { carveDataHeader, writeDataHeader } from "./frame-encoder.ts";
import { PING_BYTES } from "./frames/session-frames.ts";

export interface FrameSplitterHandler {
  /** Bytes to forward, in order; after each `push` the forwarded bytes end with a whole frame. */
  onBytes(bytes: Uint8Array): void;
  /**
   * Payload of this stream, before it is forwarded: `bytes` from `start` to `end`. No view is made, because
   * most streams' payload is ignored.
   */
  onPayload(streamId: number, bytes: Uint8Array, start: number, end: number): void;
  /** A SYN_REPLY of this stream was forwarded. */
  onReply(streamId: number): void;
  /** The sender ended this stream, by FIN or RST_STREAM. */
  onFinish(streamId: number): void;
  /** The sender ended the session; peers ignore later frames. */
  onGoAway(): void;
  /** A PING, or the answer to one; neither is forwarded. */
  onPing(id: number): void;
}

/**
 * Forwards SPDY frames without decoding them, and always leaves the receiver between two frames: if a chunk cuts
 * off a DATA frame, forwards the received part as a shorter frame, and the rest as another one.
 *
 * So a relay can append its own frame if the sender dies inside a frame. It costs one header per chunk; whole
 * frames and control frames keep their bytes, and so their headers' compression context.
 */
export class FrameSplitter {
  readonly #handler: FrameSplitterHandler;
  readonly #maxControlFrameBytes: number;
  #dataStreamId = 0;
  #dataFin = false;
  #dataBytesLeft = 0;
  /** Memory for the header or control frame that the last chunk cut off. */
  #held: Uint8Array = NOTHING;
  #heldBytes = 0;
  #isStopped = false;
  /**
   * The chunk of this `push`, the part of it that is not forwarded yet, and the frame being read.
   */
  #chunk: Uint8Array = NOTHING;
  #passStart = 0;
  #frameStart = 0;

  constructor(handler: FrameSplitterHandler, maxControlFrameBytes: number) {
    this.#handler = handler;
    this.#maxControlFrameBytes = maxControlFrameBytes;
  }

  /** Within `onPayload`: forwards the bytes before that payload's frame, and nothing from there on. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Within an event: forwards the bytes before its frame now. */
  passBeforeFrame(): void {
    const [start, end] = [this.#passStart, this.#frameStart];
    this.#passStart = end;
    if (end > start) this.#handler.onBytes(this.#chunk.subarray(start, end));
  }

  /**
   * May overwrite headers inside the chunk. Throws ProtocolError if a control frame is too long to
   * buffer.
   */
  push(chunk: Uint8Array): void {
    if (this.#isStopped) return;
    const first = this.#heldBytes === 0 ? 0 : this.#completeHeld(chunk);
    if (this.#heldBytes > 0) return;
    const start = this.#passRestOfData(chunk, first);
    if (!this.#isStopped) this.#passFrames(chunk, start);
    this.#chunk = NOTHING;
    this.#passStart = this.#frameStart = 0;
  }

  #passFrames(chunk: Uint8Array, start: number): void {
    this.#chunk = chunk;
    this.#passStart = this.#frameStart = start;
    while (this.#frameStart < chunk.length) {
      const end = this.#endOfFrame(chunk, this.#frameStart);
      if (end === undefined || this.#isStopped) break;
      if (isPing(chunk, this.#frameStart, end)) {
        this.passBeforeFrame();
        this.#handler.onPing(readUint32(chunk, this.#frameStart + FRAME_HEADER_BYTES));
        this.#passStart = end;
      }
      this.#frameStart = Math.min(end, chunk.length);
    }
    this.passBeforeFrame();
    // Copies explicitly: on a Buffer slice() would be a view, and the caller may overwrite the
    // chunk.
    if (!this.#isStopped && this.#frameStart < chunk.length) this.#hold(chunk.subarray(this.#frameStart));
  }

  #hold(rest: Uint8Array): void {
    const isHeader = rest.length < FRAME_HEADER_BYTES || ((rest[0] as number) & CONTROL_BIT) === 0;
    this.#held = new Uint8Array(isHeader ? FRAME_HEADER_BYTES : FRAME_HEADER_BYTES + readUint24(rest, 5));
    this.#held.set(rest);
    this.#heldBytes = rest.length;
  }

  /**
   * Completes a buffered header, and then a control frame; never copies DATA. Returns how much of
   * the chunk it used.
   */
  #completeHeld(chunk: Uint8Array): number {
    let used = this.#holdMore(chunk, 0);
    if (this.#heldBytes < FRAME_HEADER_BYTES) return used;
    const payloadBytes = readUint24(this.#held, 5);
    const isControl = ((this.#held[0] as number) & CONTROL_BIT) !== 0;
    if (isControl) {
      this.#checkControl(payloadBytes);
      const frameBytes = FRAME_HEADER_BYTES + payloadBytes;
      if (this.#held.length < frameBytes) {
        const header = this.#held;
        this.#held = new Uint8Array(frameBytes);
        this.#held.set(header);
      }
      used = this.#holdMore(chunk, used);
      if (this.#heldBytes < frameBytes) return used;
    } else if (payloadBytes > 0) {
      this.#dataStreamId = readUint32(this.#held, 0);
      this.#dataFin = ((this.#held[4] as number) & FLAG.FIN) !== 0;
      this.#dataBytesLeft = payloadBytes;
    }
    const held = this.#held;
    this.#held = NOTHING;
    this.#heldBytes = 0;
    if (!isControl && payloadBytes > 0) return used;
    this.#endOfFrame(held, 0);
    if (isPing(held, 0, held.length)) this.#handler.onPing(readUint32(held, FRAME_HEADER_BYTES));
    else this.#handler.onBytes(held);
    return used;
  }

  /** Appends bytes until the buffer is full; returns their end in the chunk. */
  #holdMore(chunk: Uint8Array, offset: number): number {
    const end = Math.min(chunk.length, offset + this.#held.length - this.#heldBytes);
    this.#held.set(chunk.subarray(offset, end), this.#heldBytes);
    this.#heldBytes += end - offset;
    return end;
  }

  /** Forwards the rest of an earlier chunk's DATA frame under a new header; returns its end. */
  #passRestOfData(bytes: Uint8Array, start: number): number {
    const length = Math.min(this.#dataBytesLeft, bytes.length - start);
    if (length === 0) return start;
    const end = start + length;
    this.#dataBytesLeft -= length;
    const fin = this.#dataFin && this.#dataBytesLeft === 0;
    this.#handler.onPayload(this.#dataStreamId, bytes, start, end);
    if (this.#isStopped) return end;
    if (fin) this.#handler.onFinish(this.#dataStreamId);
    this.#handler.onBytes(carveDataHeader(this.#dataStreamId, length, fin));
    this.#handler.onBytes(bytes.subarray(start, end));
    return end;
  }

  /**
   * The end of the frame at `offset`, beyond the chunk for truncated DATA; undefined if the frame
   * must be buffered.
   */
  #endOfFrame(bytes: Uint8Array, offset: number): number | undefined {
    if (bytes.length - offset < FRAME_HEADER_BYTES) return undefined;
    const payloadBytes = readUint24(bytes, offset + 5);
    const end = offset + FRAME_HEADER_BYTES + payloadBytes;
    if (((bytes[offset] as number) & CONTROL_BIT) !== 0)
      return this.#endOfControl(bytes, offset, end, payloadBytes);

    const available = bytes.length - offset - FRAME_HEADER_BYTES;
    if (available === 0 && payloadBytes > 0) return undefined;
    const streamId = readUint32(bytes, offset);
    const start = offset + FRAME_HEADER_BYTES;
    if (payloadBytes > 0) {
      this.#handler.onPayload(streamId, bytes, start, start + Math.min(available, payloadBytes));
      if (this.#isStopped) return end;
    }
    const fin = ((bytes[offset + 4] as number) & FLAG.FIN) !== 0;
    if (available >= payloadBytes) {
      if (fin) this.#handler.onFinish(streamId);
    } else {
      this.#dataStreamId = streamId;
      this.#dataFin = fin;
      this.#dataBytesLeft = payloadBytes - available;
      writeDataHeader(bytes, offset, streamId, available, false);
    }
    return end;
  }

  #endOfControl(bytes: Uint8Array, offset: number, end: number, payloadBytes: number): number | undefined {
    this.#checkControl(payloadBytes);
    if (end > bytes.length) return undefined;
    const type = ((bytes[offset + 2] as number) << 8) | (bytes[offset + 3] as number);
    if (payloadBytes >= 4) {
      const streamId = readUint32(bytes, offset + FRAME_HEADER_BYTES) & LOW_31_BITS;
      if (type === FRAME_TYPE.SYN_REPLY) this.#handler.onReply(streamId);
      else if (type === FRAME_TYPE.RST_STREAM) this.#handler.onFinish(streamId);
      else if (type === FRAME_TYPE.GOAWAY) this.#handler.onGoAway();
    }
    return end;
  }

  #checkControl(payloadBytes: number): void {
    if (payloadBytes > this.#maxControlFrameBytes) {
      throw new ProtocolError("frame-too-large", `a control frame of ${payloadBytes} bytes`);
    }
  }
}

/**
 * Whether the frame from `start` to `end` is a complete PING; the receiver refuses one with another
 * length.
 */
function isPing(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start !== FRAME_HEADER_BYTES + PING_BYTES) return false;
  return ((bytes[start] as number) & CONTROL_BIT) !== 0 && readUint16(bytes, start + 2) === FRAME_TYPE.PING;
}
