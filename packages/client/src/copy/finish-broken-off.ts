import { lstat } from "node:fs/promises";
import path from "node:path";
import type { LocalEntry } from "./archive-header.ts";
import { localPath, textOf } from "./archive-names.ts";
import { type CopyContext, noProgress } from "./copy-context.ts";
import { CopyError } from "./copy-error.ts";
import { partialName, type RemotePath } from "./remote-path.ts";
import { uploadFile } from "./upload-file.ts";

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
