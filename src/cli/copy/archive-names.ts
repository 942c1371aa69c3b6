import { lstat } from "node:fs/promises";
import path from "node:path";
import { CopyError } from "./copy-error.ts";

/** Where a name of an archive is on this machine. Names in folders are bytes, one a character (latin1), and need not be UTF-8. */
export function localPath(root: string, name: string): Buffer {
  return name === ""
    ? Buffer.from(root)
    : Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, "latin1")]);
}

/** Such a name for people to read: U+FFFD stands for what is not UTF-8. */
export function shownName(name: string): string {
  return Buffer.from(name, "latin1").toString("utf8");
}

/** Such a name's text; undefined where it is not UTF-8. */
export function textOf(name: string): string | undefined {
  const text = shownName(name);
  return Buffer.from(text).toString("latin1") === name ? text : undefined;
}

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
      `tar contents corrupted: ${JSON.stringify(shownName(name))} is outside of the destination`,
    );
  return parts.join("/");
}

/** Throws CopyError "unsafe" where a folder on the way is a link: what is written there would end elsewhere. */
export async function refuseLinks(root: string, name: string): Promise<void> {
  const parts = name.split("/");
  for (let depth = 1; depth < parts.length; depth += 1) {
    const folder = localPath(root, parts.slice(0, depth).join("/"));
    const stats = await lstat(folder).catch(() => undefined);
    if (stats?.isSymbolicLink())
      throw new CopyError("unsafe", `${folder} is a symbolic link; nothing is written through it`);
  }
}

/** An entry's name in bytes, one a character. Throws CopyError "remote" where PAX's UTF-8 could not say it. */
export function nameIn(name: string, paxName: string | undefined): string {
  if (paxName === undefined) return name;
  if (paxName.includes("\uFFFD"))
    throw new CopyError("remote", `the container's tar cannot say a name that is not UTF-8: ${paxName}`);
  return Buffer.from(paxName).toString("latin1");
}

/** The name of the folder that a name is in; "" for the outermost. */
export function folderOf(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf("/")));
}
