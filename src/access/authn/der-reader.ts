/** A DER value: its tag and contents. */
export interface DerValue {
  readonly tag: number;
  readonly contents: Uint8Array;
}

export const DER_SEQUENCE = 0x30;
export const DER_SET = 0x31;

/**
 * The sequence of values in `bytes`. Throws Error for anything but DER (X.690): high tags,
 * indefinite or overlong lengths.
 */
export function readDer(bytes: Uint8Array): DerValue[] {
  const values: DerValue[] = [];
  let at = 0;
  while (at < bytes.byteLength) {
    const tag = bytes[at] ?? 0;
    if ((tag & 0x1f) === 0x1f) throw new Error("a DER tag of several bytes");
    const { length, start } = readLength(bytes, at + 1);
    if (start + length > bytes.byteLength) throw new Error("a DER value is cut off");
    values.push({ tag, contents: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return values;
}

const MAX_LENGTH_BYTES = 4;

function readLength(bytes: Uint8Array, at: number): { length: number; start: number } {
  const first = bytes[at] ?? 0x80;
  if (first < 0x80) return { length: first, start: at + 1 };
  const count = first & 0x7f;
  const digits = bytes.subarray(at + 1, at + 1 + count);
  if (count === 0 || count > MAX_LENGTH_BYTES || digits.byteLength < count)
    throw new Error("a DER length is wrong");
  const length = digits.reduce((sum, digit) => sum * 256 + digit, 0);
  if (length < 0x80 || digits[0] === 0) throw new Error("a DER length is not the shortest");
  return { length, start: at + 1 + count };
}
