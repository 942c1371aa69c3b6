import { readUint32 } from "../../bytes/index.ts";
import { FRAME_TYPE, LOW_31_BITS } from "../constants.ts";
import { encodeTwoWords, requireNoFlags } from "./control-layout.ts";

/** Would grant more bytes to send (SPDY/3.1 section 2.6.8). Kubernetes' peers have no flow control: see the README. */
export interface WindowUpdateFrame {
  readonly type: "WINDOW_UPDATE";
  /** 0 names the whole session. */
  readonly streamId: number;
  readonly deltaBytes: number;
}

// |X|       stream id (31)           |
// |X|    delta window size (31)      |
export const WINDOW_UPDATE_BYTES = 8;

export function decodeWindowUpdate(flags: number, payload: Uint8Array): WindowUpdateFrame {
  requireNoFlags("WINDOW_UPDATE", flags);
  return {
    type: "WINDOW_UPDATE",
    streamId: readUint32(payload, 0) & LOW_31_BITS,
    deltaBytes: readUint32(payload, 4) & LOW_31_BITS,
  };
}

export function encodeWindowUpdate(frame: WindowUpdateFrame): Uint8Array {
  return encodeTwoWords(FRAME_TYPE.WINDOW_UPDATE, frame.streamId, frame.deltaBytes);
}
