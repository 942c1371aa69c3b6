import { DEFAULT_WINDOW_BYTES } from "./constants.ts";
import { encodeWindowUpdate } from "./frame-encoder.ts";

/**
 * Bytes the peer may still send, on one stream or on all (stream 0). We consume data at once, so a
 * WINDOW_UPDATE follows when half the window is used.
 */
export class ReceiveWindow {
  readonly #streamId: number;
  #bytes = DEFAULT_WINDOW_BYTES;

  constructor(streamId: number) {
    this.#streamId = streamId;
  }

  /** `bytes` counts the whole DATA frame, padding included. */
  receive(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** Call it after the frame has been consumed. */
  refill(send: (bytes: Uint8Array) => void): void {
    if (this.#bytes > DEFAULT_WINDOW_BYTES / 2) return;
    send(encodeWindowUpdate(this.#streamId, DEFAULT_WINDOW_BYTES - this.#bytes));
    this.#bytes = DEFAULT_WINDOW_BYTES;
  }
}
