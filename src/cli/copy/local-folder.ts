import { lstat, readdir, readlink } from "node:fs/promises";
import path from "node:path";

export interface LocalEntry {
  /** Below the folder, with slashes. */
  readonly name: string;
  readonly type: "directory" | "file" | "symlink";
  readonly mode: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly linkname?: string;
}

/** Depth first, a folder before what is in it; sockets and devices are left out. */
export async function listFolder(root: string, name: string): Promise<LocalEntry[]> {
  const entries: LocalEntry[] = [];
  const children = await readdir(path.join(root, name), { withFileTypes: true });
  for (const child of children.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const childName = name === "" ? child.name : `${name}/${child.name}`;
    const file = path.join(root, childName);
    const { mode, size, mtimeMs } = await lstat(file);
    const entry = { name: childName, mode: mode & 0o777, mtimeMs };
    if (child.isDirectory()) {
      entries.push({ ...entry, type: "directory", size: 0 }, ...(await listFolder(root, childName)));
    } else if (child.isFile()) entries.push({ ...entry, type: "file", size });
    else if (child.isSymbolicLink()) {
      entries.push({ ...entry, type: "symlink", size: 0, linkname: await readlink(file) });
    } else process.stderr.write(`warning: skipping special file: ${JSON.stringify(childName)}\n`);
  }
  return entries;
}
