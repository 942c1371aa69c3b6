import { lstat, readdir, readlink } from "node:fs/promises";
import path from "node:path";
import { localPath, shownName } from "./archive-names.ts";
import { type CopyContext, noProgress } from "./copy-context.ts";
import { CopyError } from "./copy-error.ts";
import { partialName, type RemotePath } from "./remote-path.ts";
import { uploadFile } from "./upload-file.ts";

const BLOCK_BYTES = 512;
const FIELD_BYTES = 100;
const TYPES = { file: "0", symlink: "2", directory: "5", longName: "L", longLink: "K" } as const;
/** The end of an archive: two blocks of zeros. */
export const ARCHIVE_END: Buffer = Buffer.alloc(2 * BLOCK_BYTES);

/**
 * The header blocks of a GNU tar entry. Names are bytes, one character each (latin1), as in file
 * systems: PAX requires UTF-8, and busybox cannot read PAX.
 */
export function archiveHeader(entry: LocalEntry): Buffer {
  const name = entry.type === "directory" ? `${entry.name}/` : entry.name;
  const { linkname = "" } = entry;
  return Buffer.concat([
    ...(linkname.length > FIELD_BYTES ? longField("longLink", linkname) : []),
    ...(name.length > FIELD_BYTES ? longField("longName", name) : []),
    block({ ...entry, type: TYPES[entry.type], name, linkname }),
  ]);
}

/** Zeros that fill an entry's last block. */
export function archivePadding(size: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES);
}

function longField(type: "longName" | "longLink", name: string): Buffer[] {
  const size = name.length + 1;
  const content = Buffer.from(`${name}\0`, "latin1");
  return [
    block({ type: TYPES[type], name: "././@LongLink", mode: 0, size, mtimeMs: 0, linkname: "" }),
    content,
    archivePadding(size),
  ];
}

interface HeaderFields extends Pick<LocalEntry, "name" | "mode" | "size" | "mtimeMs"> {
  readonly type: string;
  readonly linkname: string;
}

function block({ type, name, mode, size, mtimeMs, linkname }: HeaderFields): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(name.slice(0, FIELD_BYTES), 0, "latin1");
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  if (size < 8 ** 11) header.write(octal(size, 11), 124);
  else {
    // GNU writes numbers of 96 bits; the last 48 are enough.
    header[124] = 0x80;
    header.writeUIntBE(size, 130, 6);
  }
  header.write(octal(Math.max(0, Math.floor(mtimeMs / 1000)), 11), 136);
  header.write(" ".repeat(8), 148);
  header.write(type, 156);
  header.write(linkname.slice(0, FIELD_BYTES), 157, "latin1");
  header.write("ustar  \0", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, 148);
  return header;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}

export interface LocalEntry {
  /** Path below the folder, with slashes; bytes, one character each, like `linkname`. */
  readonly name: string;
  readonly type: "directory" | "file" | "symlink";
  readonly mode: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly linkname?: string;
}

/** Depth first, a folder before its contents. Omits sockets and devices. */
export async function listFolder(
  root: string,
  name: string,
  context: Pick<CopyContext, "warn">,
): Promise<LocalEntry[]> {
  const entries: LocalEntry[] = [];
  const children = await readdir(localPath(root, name), { encoding: "latin1" });
  for (const childBase of children.sort()) {
    const childName = name === "" ? childBase : `${name}/${childBase}`;
    const file = localPath(root, childName);
    const child = await lstat(file);
    const { mode, size, mtimeMs } = child;
    const entry = { name: childName, mode: mode & 0o777, mtimeMs };
    if (child.isDirectory()) {
      entries.push({ ...entry, type: "directory", size: 0 }, ...(await listFolder(root, childName, context)));
    } else if (child.isFile()) entries.push({ ...entry, type: "file", size });
    else if (child.isSymbolicLink()) {
      entries.push({ ...entry, type: "symlink", size: 0, linkname: await readlink(file, "latin1") });
    } else context.warn(`skipping special file: ${JSON.stringify(shownName(childName))}`);
  }
  return entries;
}

/** Sending less than this again costs no more than the commands to save it. */
const MIN_KEPT_BYTES = 1024 * 1024;
/** If only the answer was lost, the move is already done. */
const SET_ASIDE = '[ -e "$2" ] || mv "$1" "$2"';

/**
 * Resumes files that a truncated archive left incomplete; `sizes`: bytes in the container, by name.
 * Resolves to the completed files with their SHA-256. Throws CopyError, ConnectError, SessionError.
 */
export async function finishBrokenOff(
  entries: readonly LocalEntry[],
  sizes: ReadonlyMap<string, number>,
  folders: { readonly source: string; readonly staging: string },
  remote: RemotePath,
  options: CopyContext,
): Promise<[LocalEntry, string][]> {
  const names = new Set(entries.map(({ name }) => name));
  const finished: [LocalEntry, string][] = [];
  for (const entry of entries) {
    const { name, type, size, mtimeMs } = entry;
    const aside = partialName(name);
    const arrivedBytes = sizes.get(aside) ?? sizes.get(name) ?? 0;
    // The folder itself may contain a file with that name.
    if (type !== "file" || arrivedBytes < MIN_KEPT_BYTES || names.has(aside)) continue;
    if (!sizes.has(aside) && arrivedBytes >= size) continue;
    // A command's arguments are UTF-8, so a file with another name is sent again from its start.
    const text = textOf(name);
    if (text === undefined) continue;
    const [file, target] = [path.join(folders.source, text), path.posix.join(folders.staging, text)];
    await options.shell.mustRun(SET_ASIDE, [target, partialName(target)]);
    const hash = await uploadFile(
      file,
      target,
      { ...remote, hasPartial: true },
      { ...options, preservesMode: true, startProgress: noProgress },
    );
    const now = await lstat(localPath(folders.source, name));
    if (now.size < size || (now.size === size && now.mtimeMs !== mtimeMs))
      throw new CopyError("changed", `${file}: file changed as we read it`);
    finished.push([entry, hash]);
  }
  return finished;
}

/** The name as text; undefined if it is not UTF-8. */
function textOf(name: string): string | undefined {
  const text = shownName(name);
  return Buffer.from(text).toString("latin1") === name ? text : undefined;
}
