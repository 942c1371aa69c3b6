/** Just enough of POSIX ustar to make image layers: short names, root's files, no times. */

export interface TarEntry {
  name: string;
  kind: "file" | "directory" | "symlink";
  mode?: number;
  content?: Uint8Array;
  linkTarget?: string;
}

const BLOCK_BYTES = 512;
const TYPE_FLAG = { file: "0", symlink: "2", directory: "5" } as const;

export function tarArchive(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = entry.content ?? Buffer.alloc(0);
    return [headerOf(entry, content.length), content, Buffer.alloc(-content.length & (BLOCK_BYTES - 1))];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]);
}

/** name 0, mode 100, uid 108, gid 116, size 124, mtime 136, checksum 148, type 156, link 157, magic 257, version 263. */
function headerOf(entry: TarEntry, sizeBytes: number): Buffer {
  if (Buffer.byteLength(entry.name) > 99)
    throw new Error(`name too long for a plain ustar header: ${entry.name}`);
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(entry.name, 0);
  header.write(octal(entry.mode ?? 0o755, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(sizeBytes, 11), 124);
  header.write(octal(0, 11), 136);
  header.write(" ".repeat(8), 148); // the checksum counts itself as blanks
  header.write(TYPE_FLAG[entry.kind], 156);
  header.write(entry.linkTarget ?? "", 157);
  header.write("ustar\u000000", 257);
  const checksum = header.reduce((sum, byte) => sum + byte, 0);
  header.write(`${octal(checksum, 6)}\0 `, 148);
  return header;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}
