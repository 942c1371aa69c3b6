import { ProtocolError } from "../protocol-error.ts";
import { FRAME_TYPE } from "./constants.ts";
import type { ControlFrame } from "./frames/control-frame.ts";
import type { ControlFrameType } from "./frames/control-layout.ts";
import { decodeGoAway } from "./frames/go-away.ts";
import { decodeHeaders, HEADERS_FIXED_BYTES } from "./frames/headers.ts";
import { decodePing } from "./frames/ping.ts";
import { decodeRstStream } from "./frames/rst-stream.ts";
import { decodeSettings } from "./frames/settings.ts";
import { decodeSynReply, SYN_REPLY_FIXED_BYTES } from "./frames/syn-reply.ts";
import { decodeSynStream, SYN_STREAM_FIXED_BYTES } from "./frames/syn-stream.ts";
import { decodeWindowUpdate } from "./frames/window-update.ts";
import { decodeHeaderBlock, NO_HEADERS, type SpdyHeaders } from "./header-block.ts";
import { HeaderDecompressor } from "./header-compression.ts";
import type { SpdyLimits } from "./limits.ts";

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
