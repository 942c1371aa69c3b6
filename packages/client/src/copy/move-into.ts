import { lstat, readdir, rename } from "node:fs/promises";
import path from "node:path";
import { localPath, refuseLinks } from "./archive-names.ts";
import { CopyError } from "./copy-error.ts";

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
