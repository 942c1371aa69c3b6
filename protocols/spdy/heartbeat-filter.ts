import { readUint16, readUint24, readUint32 } from "../bytes/index.ts";
import { CONTROL_BIT, FLAG, FRAME_HEADER_BYTES, FRAME_TYPE } from "./constants.ts";
import { PING_BYTES } from "./frames/session-frames.ts";

export interface HeartbeatFilterHandler {
  /**
   * Bytes to forward, in order: all except PING frames. A chunk without PINGs is passed unchanged.
   */
  onBytes(bytes: Uint8Array): void;
  /** A PING or the reply to one; an id of the receiver's own parity is a reply. */
  onPing(id: number): void;
  onGoAway(): void;
  /** The control frames other than PINGs, whole, in pieces, for a FrameDecoder. */
  onControl?(bytes: Uint8Array): void;
  /** A DATA frame with FIN has begun. */
  onFinish?(streamId: number): void;
  /** The forwarded bytes end with a whole frame. Called once after `awaitBoundary`. */
  onBoundary(): void;
}

/**
 * Forwards one side's SPDY frames without decoding them, and removes PINGs. Never copies chunks or
 * writes to them; a control header that a chunk cuts off is buffered until its type is known.
 */
export class HeartbeatFilter {
  readonly #handler: HeartbeatFilterHandler;
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES);
  #headerBytesRead = 0;
  #payloadBytesLeft = 0;
  #isPing = false;
  #isControl = false;
  #pingId = 0;
  #isBoundaryDue = false;
  /** The index of the current chunk's first byte that was not forwarded yet. */
  #passStart = 0;

  constructor(handler: HeartbeatFilterHandler) {
    this.#handler = handler;
  }

  /** The forwarded bytes end with a whole frame. */
  get isBetweenFrames(): boolean {
    if (this.#headerBytesRead > 0) return this.#isHeaderHeld;
    return this.#payloadBytesLeft === 0 || this.#isPing;
  }

  /** How much of the current chunk is settled: forwarded, or ended here. */
  get passedBytes(): number {
    return this.#passStart;
  }

  /** Requests `onBoundary`. Call it while the sender is inside a frame. */
  awaitBoundary(): void {
    this.#isBoundaryDue = true;
  }

  push(chunk: Uint8Array): void {
    let at = 0;
    this.#passStart = 0;
    while (at < chunk.length) {
      at = this.#payloadBytesLeft > 0 ? this.#walkPayload(chunk, at) : this.#walkHeader(chunk, at);
    }
    if (this.isBetweenFrames) this.#reachBoundary(chunk, at);
    this.#passUpTo(chunk, at);
  }

  #walkHeader(chunk: Uint8Array, start: number): number {
    if (this.#headerBytesRead === 0) {
      this.#reachBoundary(chunk, start);
      const end = start + FRAME_HEADER_BYTES;
      if (end <= chunk.length) {
        this.#beginFrame(chunk, start);
        if (this.#isPing) this.#drop(chunk, start, end);
        return end;
      }
    }
    return this.#walkCutHeader(chunk, start);
  }

  #walkCutHeader(chunk: Uint8Array, start: number): number {
    const end = Math.min(chunk.length, start + FRAME_HEADER_BYTES - this.#headerBytesRead);
    this.#header.set(chunk.subarray(start, end), this.#headerBytesRead);
    this.#headerBytesRead += end - start;
    const isHeld = this.#isHeaderHeld;
    if (isHeld) this.#drop(chunk, start, end);
    if (this.#headerBytesRead < FRAME_HEADER_BYTES) return end;
    this.#headerBytesRead = 0;
    this.#beginFrame(this.#header, 0);
    if (isHeld && !this.#isPing) this.#handler.onBytes(this.#header.slice());
    return end;
  }

  /** Only control frames' headers are buffered, never a DATA frame's. */
  get #isHeaderHeld(): boolean {
    return ((this.#header[0] as number) & CONTROL_BIT) !== 0;
  }

  #beginFrame(bytes: Uint8Array, at: number): void {
    this.#payloadBytesLeft = readUint24(bytes, at + 5);
    const isControl = ((bytes[at] as number) & CONTROL_BIT) !== 0;
    const type = isControl ? readUint16(bytes, at + 2) : 0;
    // The receiver refuses a PING of another length.
    this.#isPing = type === FRAME_TYPE.PING && this.#payloadBytesLeft === PING_BYTES;
    this.#isControl = isControl && !this.#isPing;
    if (this.#isControl) this.#handler.onControl?.(bytes.subarray(at, at + FRAME_HEADER_BYTES));
    else if (!isControl && ((bytes[at + 4] as number) & FLAG.FIN) !== 0)
      this.#handler.onFinish?.(readUint32(bytes, at));
    if (type === FRAME_TYPE.GOAWAY) this.#handler.onGoAway();
  }

  #walkPayload(chunk: Uint8Array, start: number): number {
    const end = Math.min(chunk.length, start + this.#payloadBytesLeft);
    this.#payloadBytesLeft -= end - start;
    if (this.#isControl) this.#handler.onControl?.(chunk.subarray(start, end));
    if (!this.#isPing) return end;
    for (let at = start; at < end; at++) this.#pingId = ((this.#pingId << 8) | (chunk[at] as number)) >>> 0;
    this.#drop(chunk, start, end);
    if (this.#payloadBytesLeft === 0) {
      const id = this.#pingId;
      this.#isPing = false;
      this.#pingId = 0;
      this.#handler.onPing(id);
    }
    return end;
  }

  #reachBoundary(chunk: Uint8Array, at: number): void {
    if (!this.#isBoundaryDue) return;
    this.#passUpTo(chunk, at);
    this.#isBoundaryDue = false;
    this.#handler.onBoundary();
  }

  /** Forwards the bytes before this frame and drops the frame. */
  #drop(chunk: Uint8Array, start: number, end: number): void {
    this.#passUpTo(chunk, start);
    this.#passStart = end;
  }

  #passUpTo(chunk: Uint8Array, end: number): void {
    const start = this.#passStart;
    this.#passStart = end;
    if (start < end)
      this.#handler.onBytes(start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end));
  }
}
