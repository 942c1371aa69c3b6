import { DEFAULT_WINDOW_BYTES } from "./constants.ts";
import { encodeWindowUpdate } from "./frame-encoder.ts";

/**
 * How much the peer may still send, on one stream or, as stream 0, on all. Data is consumed at once, so the peer is
 * told of room as soon as half of the window is used: a frame, a quarter of it at most, always has room.
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
