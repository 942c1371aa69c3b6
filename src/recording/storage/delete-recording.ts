import { constants } from "node:fs";
import { appendFile, rm, unlink } from "node:fs/promises";
import path from "node:path";
import { RecordingFileError } from "../reading/recording-file-error.ts";
import { readLines } from "../reading/recording-lines.ts";

/** Lists deleted recordings, to distinguish them from recordings that disappeared. */
const DELETED = "deleted.jsonl";
/** Suffix of the file beside an uploaded recording; `ID.cast.uploaded` names the object in the store. */
export const UPLOADED = ".uploaded";

/** Follows no link that was planted at the list's name. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;

/** Deletes a finished recording, and keeps its head in DELETED. Rejects with RecordingFileError. */
export async function deleteRecording(folder: string, file: string, reason: string): Promise<void> {
  let head = "";
  await readLines(file, (line) => {
    head = line.toString("utf8");
  });
  const deleted = { file: path.relative(folder, file), deletedAt: new Date().toISOString(), reason, head };
  const list = path.join(folder, DELETED);
  try {
    // The line is written first: without it the deletion would look like a theft.
    await appendFile(list, `${JSON.stringify(deleted)}\n`, { mode: 0o600, flag: APPEND });
  } catch (error) {
    throw RecordingFileError.of(error, list);
  }
  await rm(`${file}${UPLOADED}`, { force: true });
  await unlink(file).catch((error: unknown) => {
    throw RecordingFileError.of(error, file);
  });
}
