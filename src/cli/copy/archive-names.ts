import { lstat } from "node:fs/promises";
import path from "node:path";
import { CopyError } from "./copy-error.ts";

/**
 * A name of an archive as a path below its folder: "" for the folder itself. Throws CopyError "unsafe" for one that leads
 * outside, whatever wrote it.
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
      `tar contents corrupted: ${JSON.stringify(name)} is outside of the destination`,
    );
  return parts.join("/");
}

/** Throws CopyError "unsafe" where a folder on the way is a link: what is written there would end elsewhere. */
export async function refuseLinks(root: string, name: string): Promise<void> {
  let folder = root;
  for (const part of name.split("/").slice(0, -1)) {
    folder = path.join(folder, part);
    const stats = await lstat(folder).catch(() => undefined);
    if (stats?.isSymbolicLink())
      throw new CopyError("unsafe", `${folder} is a symbolic link; nothing is written through it`);
  }
}
