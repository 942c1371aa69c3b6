import { TextDecoder } from "node:util";
import type { DerValue } from "./der-reader.ts";

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A text whose one byte is one character, and which characters it may have. */
const PATTERN_OF_TAG: Readonly<Record<number, RegExp>> = {
  // NumericString, PrintableString with the `*` and `&` that certificates in use have, T61String read as Latin-1, IA5String.
  18: /^[0-9 ]*$/,
  19: /^[A-Za-z0-9'()+,./:=? *&-]*$/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every byte is allowed.
  20: /^[\x00-\xff]*$/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is allowed.
  22: /^[\x00-\x7f]*$/,
};
const UTF8_STRING = 12;
const BMP_STRING = 30;

/** The text of a string type, as Go's crypto/x509 reads it. Throws an Error for another type, and for bytes that are none of its text. */
export function decodeDerText({ tag, contents }: DerValue): string {
  if (tag === UTF8_STRING) return UTF8.decode(contents);
  if (tag === BMP_STRING) return bmpText(contents);
  const text = Buffer.from(contents).toString("latin1");
  if (PATTERN_OF_TAG[tag]?.test(text) !== true) throw new Error("no text of a known type");
  return text;
}

/** UCS-2, without a terminator; what UTF-16 alone means (surrogates) and noncharacters are refused. */
function bmpText(contents: Uint8Array): string {
  if (contents.byteLength % 2 !== 0) throw new Error("half a character");
  const text = Buffer.from(contents).swap16().toString("utf16le").replace(/\0$/, "");
  if (/[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]/.test(text)) throw new Error("a character that is none");
  return text;
}
