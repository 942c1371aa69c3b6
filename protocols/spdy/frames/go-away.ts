import { readUint32 } from "../../bytes/index.ts";
import { FRAME_TYPE, LOW_31_BITS } from "../constants.ts";
import { encodeTwoWords, requireNoFlags } from "./control-layout.ts";

/**
 * Ends the session (SPDY/3 section 2.6.6) at once: spdystream stops reading at a GOAWAY, so a
 * session cannot drain after it.
 */
export interface GoAwayFrame {
  readonly type: "GOAWAY";
  readonly lastGoodStreamId: number;
  /** One of `GOAWAY`, or an unknown number. */
  readonly status: number;
}

// |X|  last good stream id (31)      |
// |          status (32)             |
export const GOAWAY_BYTES = 8;

export function decodeGoAway(flags: number, payload: Uint8Array): GoAwayFrame {
  requireNoFlags("GOAWAY", flags);
  return {
    type: "GOAWAY",
    lastGoodStreamId: readUint32(payload, 0) & LOW_31_BITS,
    status: readUint32(payload, 4),
  };
}

export function encodeGoAway(frame: GoAwayFrame): Uint8Array {
  return encodeTwoWords(FRAME_TYPE.GOAWAY, frame.lastGoodStreamId, frame.status);
}
