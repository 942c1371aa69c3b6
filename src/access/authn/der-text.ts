import { TextDecoder } from "node:util";
import type { DerValue } from "./der-reader.ts";

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Types with one byte a character, and their allowed characters. */
const PATTERN_OF_TAG: Readonly<Record<number, RegExp>> = {
  // NumericString; PrintableString plus `*` and `&`, which real certificates contain; T61String as
  // Latin-1; IA5String.
  18: /^[0-9 ]*$/,
  19: /^[A-Za-z0-9'()+,./:=? *&-]*$/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every byte is allowed.
  20: /^[\x00-\xff]*$/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is allowed.
  22: /^[\x00-\x7f]*$/,
};
const UTF8_STRING = 12;
const BMP_STRING = 30;

/**
 * Decodes a string type as Go's crypto/x509 does. Throws Error for another type, and for invalid
 * bytes.
 */
export function decodeDerText({ tag, contents }: DerValue): string {
  if (tag === UTF8_STRING) return UTF8.decode(contents);
  if (tag === BMP_STRING) return bmpText(contents);
  const text = Buffer.from(contents).toString("latin1");
  if (PATTERN_OF_TAG[tag]?.test(text) !== true) throw new Error("no text of a known type");
  return text;
}

/** UCS-2 without a terminator; refuses surrogates and noncharacters. */
function bmpText(contents: Uint8Array): string {
  if (contents.byteLength % 2 !== 0) throw new Error("half a character");
  const text = Buffer.from(contents).swap16().toString("utf16le").replace(/\0$/, "");
  if (/[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]/.test(text)) throw new Error("a character that is none");
  return text;
}
