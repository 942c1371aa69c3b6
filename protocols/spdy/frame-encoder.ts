import { writeUint24, writeUint32 } from "../bytes/index.ts";
import { FLAG } from "./constants.ts";
import type { ControlFrame } from "./frames/control-frame.ts";
import { encodeGoAway } from "./frames/go-away.ts";
import { encodeHeaders } from "./frames/headers.ts";
import { encodePing } from "./frames/ping.ts";
import { encodeRstStream } from "./frames/rst-stream.ts";
import { encodeSettings } from "./frames/settings.ts";
import { encodeSynReply } from "./frames/syn-reply.ts";
import { encodeSynStream } from "./frames/syn-stream.ts";
import { encodeWindowUpdate } from "./frames/window-update.ts";
import { encodeHeaderBlock, type SpdyHeaders } from "./header-block.ts";
import { HeaderCompressor } from "./header-compression.ts";

/** Writes the header of a DATA frame, `DATA_HEADER_BYTES` long. The payload (0 to 2^24 - 1 bytes) must follow it on the wire. */
export function writeDataHeader(
  target: Uint8Array,
  offset: number,
  streamId: number,
  payloadBytes: number,
  fin: boolean,
): void {
  writeUint32(target, offset, streamId);
  target[offset + 4] = fin ? FLAG.FIN : 0;
  writeUint24(target, offset + 5, payloadBytes);
}

/**
 * Encodes control frames for one direction of one connection. Send the frames in the order of
 * encoding: the first header block carries the zlib header.
 */
export class FrameEncoder {
  readonly #compressor = new HeaderCompressor();

  encode(frame: ControlFrame): Uint8Array {
    switch (frame.type) {
      case "SYN_STREAM":
        return encodeSynStream(frame, this.#headerBlock(frame.headers));
      case "SYN_REPLY":
        return encodeSynReply(frame, this.#headerBlock(frame.headers));
      case "HEADERS":
        return encodeHeaders(frame, this.#headerBlock(frame.headers));
      case "RST_STREAM":
        return encodeRstStream(frame);
      case "SETTINGS":
        return encodeSettings(frame);
      case "PING":
        return encodePing(frame);
      case "GOAWAY":
        return encodeGoAway(frame);
      case "WINDOW_UPDATE":
        return encodeWindowUpdate(frame);
    }
  }

  #headerBlock(headers: SpdyHeaders): Uint8Array {
    return headers.size === 0
      ? this.#compressor.compressEmpty()
      : this.#compressor.compress(encodeHeaderBlock(headers));
  }
}
