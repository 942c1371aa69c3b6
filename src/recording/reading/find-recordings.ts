import { readdir, stat } from "node:fs/promises";
import path from "node:path";

const ENDING = ".cast";

/** Finished recordings of a folder, the oldest first; for a file, the file. Rejects if there is no such thing. */
export async function findRecordings(place: string): Promise<string[]> {
  if (!(await stat(place)).isDirectory()) return [place];
  const names = await readdir(place, { recursive: true });
  return names
    .filter((name) => name.endsWith(ENDING))
    .sort()
    .map((name) => path.join(place, name));
}

/** The folder that the recording is in, with its keys: `FOLDER/2026/11/22/ID.cast`. */
export function folderOf(file: string): string {
  return path.resolve(path.dirname(file), "../../..");
}

/** The recording with this session's id, or of this path. Throws if there is none. */
export async function findRecording(folder: string | undefined, name: string): Promise<string> {
  if (folder === undefined || name.endsWith(ENDING)) return name;
  const found = (await findRecordings(folder)).find((file) => path.basename(file) === `${name}${ENDING}`);
  if (found === undefined) throw new Error(`${folder} has no recording ${name}`);
  return found;
}
