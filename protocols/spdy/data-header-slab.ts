import { DATA_HEADER_BYTES } from "./constants.ts";
import { writeDataHeader } from "./frame-encoder.ts";

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
