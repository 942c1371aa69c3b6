import { Buffer } from "node:buffer";

/** The types that records choose from by a byte. The last type does not exist in tar. */
const TYPES = ["0", "5", "1", "2", "3", "6", "7", "L", "K", "x", "g", "\0", "Z"];
/** Sizes for a header in place of the content's size. */
const ODD_SIZES = [
  "77777777777",
  "-0000000001",
  "9999999999",
  "           ",
  "\x80\0\0\0\0\0\0\0\0\0\x02\0",
  "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
  "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
  "00000000001",
];
const FLAG = { wrongSum: 1, ustar: 2, slash: 4, long: 8, pax: 16, large: 32, cut: 64, global: 128 } as const;
const BLOCK_BYTES = 512;

/**
 * Makes an archive from any bytes, so that a search changes entries as well as blocks. If the first
 * byte is odd, the rest is an archive; if even, records of type, flags, size and three strings with
 * a length byte each: name, link, content.
 */
export function archiveOf(bytes: Buffer): Buffer {
  if ((bytes[0] ?? 0) % 2 === 1) return bytes.subarray(1);
  let at = 1;
  const byte = (): number => bytes[at++] ?? 0;
  const text = (): string => {
    const length = byte();
    at += length;
    return bytes.toString("latin1", at - length, at);
  };
  const parts: Buffer[] = [];
  let isCut = false;
  while (at < bytes.length) {
    const [type, flags, size] = [TYPES[byte() % TYPES.length] ?? "0", byte(), byte()];
    const has = (flag: number): boolean => (flags & flag) !== 0;
    const [name, link, short] = [text(), text(), text()];
    const content = has(FLAG.large) ? short.repeat(600) : short;
    const full = has(FLAG.slash) ? `${name}/` : name;
    const fields = { isUstar: has(FLAG.ustar), isWrong: has(FLAG.wrongSum) };
    if (has(FLAG.long)) parts.push(...entry("L", "././@LongLink", "", `${full}\0`, fields));
    if (has(FLAG.pax))
      parts.push(
        ...entry(has(FLAG.global) ? "g" : "x", "pax", "", paxOf({ path: full, linkpath: link }), fields),
      );
    const stated = size < 128 ? undefined : ODD_SIZES[size % ODD_SIZES.length];
    parts.push(...entry(type, full, link, content, { ...fields, stated }));
    isCut = has(FLAG.cut);
  }
  if (!isCut) parts.push(Buffer.alloc(2 * BLOCK_BYTES));
  return Buffer.concat(parts);
}

/** A record of an archive's input. `type` is one of tar's. */
export function archiveRecord(
  type: string,
  name: string,
  { flags = 0, size = 0, link = "", content = "" } = {},
): string {
  const strings = [name, link, content].map((each) => String.fromCharCode(each.length) + each);
  return String.fromCharCode(TYPES.indexOf(type), flags, size) + strings.join("");
}

interface HeaderFields {
  readonly isUstar: boolean;
  readonly isWrong: boolean;
  readonly stated?: string | undefined;
}

function entry(
  type: string,
  name: string,
  link: string,
  content: string,
  { isUstar, isWrong, stated }: HeaderFields,
): Buffer[] {
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(name.slice(0, 100), 0, "latin1");
  header.write(`0000644\0${"0000000\0".repeat(2)}`, 100);
  header.write(stated ?? content.length.toString(8).padStart(11, "0"), 124, "latin1");
  header.write("00000000000\0        ", 136);
  header.write(type, 156, "latin1");
  header.write(link.slice(0, 100), 157, "latin1");
  header.write(isUstar ? "ustar\x0000" : "ustar  \0", 257);
  if (isUstar) header.write(name.slice(100, 255), 345, "latin1");
  const sum = header.reduce((total, each) => total + each, isWrong ? 1 : 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return [header, Buffer.from(content, "latin1"), Buffer.alloc(-content.length & (BLOCK_BYTES - 1))];
}

/** `LENGTH KEY=VALUE` and a line feed; the length includes its own digits. */
function paxOf(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([key, value]) => {
      const rest = Buffer.byteLength(` ${key}=${value}\n`, "latin1");
      const digits = String(rest + String(rest).length).length;
      return `${rest + digits} ${key}=${value}\n`;
    })
    .join("");
}
