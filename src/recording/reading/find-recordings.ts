import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { RecordingFileError } from "./recording-file-error.ts";

const ENDING = ".cast";

/**
 * A folder's finished recordings in the order of their paths, oldest day first; a file is returned
 * itself. Rejects with RecordingFileError if the path does not exist.
 */
export async function findRecordings(place: string): Promise<string[]> {
  try {
    if (!(await stat(place)).isDirectory()) return [place];
    return (await filesBelow(place)).filter((file) => file.endsWith(ENDING)).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT")
      throw new RecordingFileError(`${place}: no such file or folder`);
    throw RecordingFileError.of(error, place);
  }
}

/** Files at any depth, without following links. Leaves out folders that it may not read, such as `lost+found`. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries.map(async (entry) => {
      const file = path.join(folder, entry.name);
      if (entry.isDirectory()) return await filesBelow(file).catch(noneIfClosed);
      return entry.isFile() ? [file] : [];
    }),
  );
  return found.flat();
}

/** A day's folder is deleted with its last recording. Other folders are not of recordings. */
const CLOSED: readonly unknown[] = ["ENOENT", "EACCES", "EPERM", "ENAMETOOLONG"];

function noneIfClosed(error: NodeJS.ErrnoException): string[] {
  if (CLOSED.includes(error.code)) return [];
  throw error;
}

/** Finds a recording by its session's id or its path. Rejects with RecordingFileError if there is none. */
export async function findRecording(folder: string | undefined, name: string): Promise<string> {
  if (folder === undefined || name.endsWith(ENDING)) return name;
  const found = (await findRecordings(folder)).find((file) => path.basename(file) === `${name}${ENDING}`);
  if (found !== undefined) return found;
  // `replay` and `show` take it by its path.
  const isBegun = (file: string): boolean =>
    path.basename(file).startsWith(`${name}${ENDING}.`) && file.endsWith(".part");
  const begun = (await filesBelow(folder).catch(() => [])).find(isBegun);
  if (begun !== undefined) throw new RecordingFileError(`the recording ${name} is not finished: ${begun}`);
  throw new RecordingFileError(`${folder} has no recording ${name}`);
}
