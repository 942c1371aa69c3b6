import { readUint16, readUint24 } from "../bytes/index.ts";
import { CONTROL_BIT, FRAME_HEADER_BYTES, FRAME_TYPE } from "./constants.ts";

/**
 * Finds the GOAWAY in a SPDY connection that others decode: reads 8-byte headers and skips their
 * payloads. Never writes to chunks, and buffers only a header that a chunk cuts off.
 */
export class FrameWalker {
  readonly #onGoAway: () => void;
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES);
  #headerBytesRead = 0;
  #payloadBytesLeft = 0;

  constructor(onGoAway: () => void) {
    this.#onGoAway = onGoAway;
  }

  /**
   * Reads `chunk` from `start` to `end`. A tunnel's bytes are still masked, as WebSocketFrameWalker
   * reports them; only headers are unmasked here.
   */
  push(chunk: Uint8Array, start = 0, end: number = chunk.length, maskKey = 0, maskPhase = 0): void {
    let at = start;
    while (at < end) {
      if (this.#payloadBytesLeft > 0) {
        const skipped = Math.min(this.#payloadBytesLeft, end - at);
        this.#payloadBytesLeft -= skipped;
        at += skipped;
      } else if (maskKey === 0 && this.#headerBytesRead === 0 && end - at >= FRAME_HEADER_BYTES) {
        this.#beginFrame(chunk, at);
        at += FRAME_HEADER_BYTES;
      } else {
        const mask = maskKey >>> (24 - 8 * ((maskPhase + at - start) & 3));
        this.#header[this.#headerBytesRead++] = (chunk[at++] as number) ^ mask;
        if (this.#headerBytesRead < FRAME_HEADER_BYTES) continue;
        this.#headerBytesRead = 0;
        this.#beginFrame(this.#header, 0);
      }
    }
  }

  #beginFrame(bytes: Uint8Array, at: number): void {
    this.#payloadBytesLeft = readUint24(bytes, at + 5);
    const isControl = ((bytes[at] as number) & CONTROL_BIT) !== 0;
    if (isControl && readUint16(bytes, at + 2) === FRAME_TYPE.GOAWAY) this.#onGoAway();
  }
}
