import { DEFAULT_WINDOW_BYTES } from "./constants.ts";
import { encodeWindowUpdate } from "./frame-encoder.ts";

/**
 * What the peer may still send on one stream, or on all (stream 0). Data is consumed at once, so a
 * WINDOW_UPDATE follows as soon as half of the window is used.
 */
export class ReceiveWindow {
  readonly #streamId: number;
  #bytes = DEFAULT_WINDOW_BYTES;

  constructor(streamId: number) {
    this.#streamId = streamId;
  }

  /** `bytes` are a DATA frame's, padding included. */
  receive(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** The frame has been taken. */
  refill(send: (bytes: Uint8Array) => void): void {
    if (this.#bytes > DEFAULT_WINDOW_BYTES / 2) return;
    send(encodeWindowUpdate(this.#streamId, DEFAULT_WINDOW_BYTES - this.#bytes));
    this.#bytes = DEFAULT_WINDOW_BYTES;
  }
}
