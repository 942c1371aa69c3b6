import { type HeaderEntry, STATIC_TABLE } from "./dynamic-table.ts";

/** Maps `name\0value` and `name` to their first index. */
const indexOfEntry = new Map<string, number>();
const indexOfName = new Map<string, number>();
for (const [at, [name, value]] of STATIC_TABLE.entries()) {
  indexOfEntry.set(`${name}\0${value}`, at + 1);
  if (!indexOfName.has(name)) indexOfName.set(name, at + 1);
}

/**
 * A header block that does not use the peer's dynamic table, so one block serves many connections.
 * Names are lower case; strings are latin1: one character a byte.
 */
export function encodeHeaderBlock(fields: readonly HeaderEntry[]): Uint8Array {
  const bytes: number[] = [];
  for (const [name, value] of fields) {
    const index = indexOfEntry.get(`${name}\0${value}`);
    if (index !== undefined) {
      pushInteger(bytes, 0x80, 7, index);
      continue;
    }
    const nameIndex = indexOfName.get(name) ?? 0;
    pushInteger(bytes, 0, 4, nameIndex);
    if (nameIndex === 0) pushString(bytes, name);
    pushString(bytes, value);
  }
  return Uint8Array.from(bytes);
}

function pushString(bytes: number[], text: string): void {
  pushInteger(bytes, 0, 7, text.length);
  for (let at = 0; at < text.length; at++) bytes.push(text.charCodeAt(at));
}

/** RFC 7541 section 5.1. */
function pushInteger(bytes: number[], pattern: number, prefixBits: number, value: number): void {
  const mask = (1 << prefixBits) - 1;
  if (value < mask) {
    bytes.push(pattern | value);
    return;
  }
  bytes.push(pattern | mask);
  let rest = value - mask;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  bytes.push(rest);
}
