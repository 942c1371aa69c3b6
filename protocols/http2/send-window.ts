import { DEFAULT_WINDOW_BYTES, MAX_WINDOW_BYTES } from "./constants.ts";
import { ERROR_CODE } from "./error-codes.ts";
import { Http2Error } from "./http2-error.ts";

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
