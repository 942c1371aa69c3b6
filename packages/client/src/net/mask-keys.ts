import { randomFillSync } from "node:crypto";

const maskKeys = new Uint32Array(256);
let usedMaskKeys = maskKeys.length;

/**
 * Unpredictable (RFC 6455 section 5.3). Drawn in batches, since a call of the random source costs more
 * than a small frame.
 */
export function nextMaskKey(): number {
  if (usedMaskKeys === maskKeys.length) {
    randomFillSync(maskKeys);
    usedMaskKeys = 0;
  }
  return maskKeys[usedMaskKeys++] as number;
}
