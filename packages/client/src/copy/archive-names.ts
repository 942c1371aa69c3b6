import { lstat, readdir, rename } from "node:fs/promises";
import path from "node:path";
import type { Headers } from "tar-stream";
import { CopyError } from "./copy-error.ts";

const SHOWN_BYTES = 256;

/**
 * The local path for an archive's name. Names are bytes, one character each (latin1), and need not
 * be UTF-8.
 */
export function localPath(root: string, name: string): Buffer {
  return name === ""
    ? Buffer.from(root)
    : Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")]);
}

/** The name for display: U+FFFD replaces bytes that are not UTF-8. */
export function shownName(name: string): string {
  return Buffer.from(name, "latin1").toString("utf8");
}

/** The name in quotes, for a text: an archive's may take 64 KiB. */
export function quotedName(name: string): string {
  return JSON.stringify(
    name.length <= SHOWN_BYTES ? shownName(name) : `${shownName(name.slice(0, SHOWN_BYTES))}...`,
  );
}

/** Lines for tar's -X that leave these files out. */
export function excludePatterns(names: Iterable<string>): string {
  return (
    [...names]
      // A line feed would end the pattern, and the rest would exclude another file.
      .filter((name) => !name.includes("\n"))
      .map((name) => `./${name.replace(/[\\*?[\]]/g, "\\$&")}\n`)
      .join("")
  );
}

/**
 * An archive's name as a path below its folder: "" for the folder itself. Throws CopyError "unsafe"
 * for a name that leads outside.
 */
export function safeName(name: string): string {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  const isUnsafe =
    name.startsWith("/") ||
    name.includes("\0") ||
    parts.includes("..") ||
    (path.sep === "\\" && /[\\:]/.test(name));
  if (isUnsafe)
    throw new CopyError(
      "unsafe",
      `tar contents corrupted: ${quotedName(name)} is outside of the destination`,
    );
  return parts.join("/");
}

/** Throws CopyError "unsafe" if a folder on the way is a link, because writes would land elsewhere. */
async function refuseLinks(root: string, name: string): Promise<void> {
  const parts = name.split("/");
  for (let depth = 1; depth < parts.length; depth += 1) {
    const folder = localPath(root, parts.slice(0, depth).join("/"));
    const stats = await lstat(folder).catch(() => undefined);
    if (stats?.isSymbolicLink())
      throw new CopyError("unsafe", `${folder} is a symbolic link; nothing is written through it`);
  }
}

/**
 * An entry's name in bytes, one character each. Throws CopyError "remote" if PAX's UTF-8 could not
 * represent it.
 */
export function nameIn(name: string, paxName: string | undefined): string {
  if (paxName === undefined) return name;
  if (paxName.includes("\uFFFD"))
    throw new CopyError("remote", `the container's tar cannot say a name that is not UTF-8: ${paxName}`);
  return Buffer.from(paxName).toString("latin1");
}

/** An entry of an archive, as tar-stream reads it. */
export interface EntryHeader extends Headers {
  readonly pax?: Readonly<Record<string, string>> | null;
}

/**
 * An entry's name below its folder. Throws CopyError as `safeName` and `nameIn` do, and Error for an
 * entry that cannot be unpacked.
 */
export function entryName({ name: given, size = 0, type, pax }: EntryHeader): string {
  // tar-stream reads -1 as -0.
  if (!Number.isSafeInteger(size) || size < 0 || Object.is(size, -0))
    throw new Error(`an entry states a size of ${size === 0 ? -1 : size}`);
  const name = safeName(nameIn(given, pax?.path));
  if (type === null) throw new Error(`${quotedName(name)} is of an unknown type, such as a sparse file`);
  if (Object.keys(pax ?? {}).some((key) => key.startsWith("GNU.sparse.")))
    throw new Error(`${quotedName(name)} is a sparse file`);
  return name;
}

/** The name's parent folder; "" for the outermost. */
export function folderOf(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf("/")));
}

/** Renames the contents of `staging` to below `destination`, and merges folders that exist already. */
export async function moveInto(staging: string, destination: string, name: string): Promise<void> {
  const [arrived, target] = [localPath(staging, name), localPath(destination, name)];
  if (name !== "") await refuseLinks(destination, name);
  const known = await lstat(target).catch(() => undefined);
  if (known === undefined) {
    await rename(arrived, target);
    return;
  }
  if (!(await lstat(arrived)).isDirectory() || (name === "" && known.isSymbolicLink())) {
    if (known.isDirectory()) throw new CopyError("usage", `${target} is a folder`);
    await rename(arrived, target);
    return;
  }
  if (!known.isDirectory()) throw new CopyError("unsafe", `${target} is not a folder`);
  for (const child of await readdir(arrived, { encoding: "latin1" }))
    await moveInto(staging, destination, path.posix.join(name, child));
}
