import { encodeWindowUpdate } from "./frame-encoder.ts";
import { ERROR_CODE, Http2Error } from "./http2-error.ts";
import { DEFAULT_WINDOW_BYTES, MAX_WINDOW_BYTES } from "./limits.ts";

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

  /** Call this after the frame has been consumed. */
  refill(send: (bytes: Uint8Array) => void): void {
    if (this.#bytes > DEFAULT_WINDOW_BYTES / 2) return;
    send(encodeWindowUpdate(this.#streamId, DEFAULT_WINDOW_BYTES - this.#bytes));
    this.#bytes = DEFAULT_WINDOW_BYTES;
  }
}

/**
 * Bytes that we may still send on one stream or on all (RFC 9113 section 6.9). A SETTINGS can make
 * it negative.
 */
export class SendWindow {
  #bytes: number;

  constructor(bytes: number = DEFAULT_WINDOW_BYTES) {
    this.#bytes = bytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  take(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** Throws Http2Error FLOW_CONTROL_ERROR past 2^31-1. */
  grow(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_WINDOW_BYTES) {
      throw new Http2Error("connection", ERROR_CODE.FLOW_CONTROL_ERROR, "window too large");
    }
  }
}
