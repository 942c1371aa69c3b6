/** Call arguments live on the stack; more than this many may not fit. */
const PART_BYTES = 1_024;

/** One flat string, one character a byte. Appending characters one by one would build a deep rope. */
export function latin1Text(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at += PART_BYTES) {
    text += String.fromCharCode.apply(null, numbersOf(bytes, at, Math.min(end, at + PART_BYTES)));
  }
  return text;
}

/** `apply` accepts typed arrays, although its type does not. */
function numbersOf(bytes: Uint8Array, start: number, end: number): number[] {
  return bytes.subarray(start, end) as unknown as number[];
}
