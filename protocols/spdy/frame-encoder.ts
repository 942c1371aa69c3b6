import { writeUint24, writeUint32 } from "../bytes/index.ts";
import { DATA_HEADER_BYTES, FLAG } from "./constants.ts";
import type { ControlFrame } from "./frames/control-frame.ts";
import { encodeGoAway, encodePing, encodeSettings } from "./frames/session-frames.ts";
import {
  encodeHeaders,
  encodeRstStream,
  encodeSynReply,
  encodeSynStream,
  encodeWindowUpdate,
} from "./frames/stream-frames.ts";
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

const SLAB_BYTES = 4 * 1024;

// All sessions share one slab, used front to back and never reused, because a socket may need a
// header long after send(). So an idle session costs nothing, and a frame costs one view instead of
// an allocation outside V8's heap.
let slab = new Uint8Array(0);
let usedBytes = 0;

/** A DATA header in memory that is never reused. */
export function carveDataHeader(streamId: number, payloadBytes: number, fin: boolean): Uint8Array {
  if (usedBytes + DATA_HEADER_BYTES > slab.length) {
    slab = new Uint8Array(SLAB_BYTES);
    usedBytes = 0;
  }
  writeDataHeader(slab, usedBytes, streamId, payloadBytes, fin);
  const header = slab.subarray(usedBytes, usedBytes + DATA_HEADER_BYTES);
  usedBytes += DATA_HEADER_BYTES;
  return header;
}
