/** The bytes from `start` to before `end`, one character each: what a header may hold is not known to be UTF-8. */
export type TextOf<Chunk extends Uint8Array> = (bytes: Chunk, start: number, end: number) => string;

// Arguments of one call live on the stack.
const CHARACTERS_AT_ONCE = 4096;

/** Plain ECMAScript; a platform's own conversion is faster, see `ResponseDecoderOptions.textOf`. */
export function latin1Text(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at += CHARACTERS_AT_ONCE) {
    text += String.fromCharCode(...bytes.subarray(at, Math.min(end, at + CHARACTERS_AT_ONCE)));
  }
  return text;
}
