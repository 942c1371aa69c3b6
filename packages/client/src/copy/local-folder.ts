import { lstat, readdir, readlink } from "node:fs/promises";
import { localPath, shownName } from "./archive-names.ts";
import type { CopyContext } from "./copy-context.ts";

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
