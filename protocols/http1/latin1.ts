/**
 * Turns the bytes from `start` to before `end` into one character each, because headers are not
 * always UTF-8.
 */
export type TextOf<Chunk extends Uint8Array> = (bytes: Chunk, start: number, end: number) => string;

// Call arguments live on the stack.
const CHARACTERS_AT_ONCE = 4096;

/** Plain ECMAScript; a platform may pass a faster conversion, see `ResponseDecoderOptions.textOf`. */
export function latin1Text(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at += CHARACTERS_AT_ONCE) {
    text += String.fromCharCode(...bytes.subarray(at, Math.min(end, at + CHARACTERS_AT_ONCE)));
  }
  return text;
}
