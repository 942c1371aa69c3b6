/** Arguments of one call; more of them than this may not fit on the stack. */
const PART_BYTES = 1_024;

/** Each byte a character, as one flat text: adding them one by one leaves a heap of halves behind. */
export function latin1(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at += PART_BYTES) {
    text += String.fromCharCode.apply(null, numbersOf(bytes, at, Math.min(end, at + PART_BYTES)));
  }
  return text;
}

/** Typed arrays are numbers' lists to `apply`, whatever its type says. */
function numbersOf(bytes: Uint8Array, start: number, end: number): number[] {
  return bytes.subarray(start, end) as unknown as number[];
}
