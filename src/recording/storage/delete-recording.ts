import { appendFile, rm, unlink } from "node:fs/promises";
import path from "node:path";
import { fileErrorOf } from "../reading/recording-file-error.ts";
import { readLines } from "../reading/recording-lines.ts";

/** Lists deleted recordings, so that a deleted one differs from one that vanished. */
export const DELETED = "deleted.jsonl";
/** Beside a recording that is in the store: `ID.cast.uploaded` says as which object. */
export const UPLOADED = ".uploaded";

/** Deletes a finished recording and leaves its last line, the head. Rejects with RecordingFileError. */
export async function deleteRecording(folder: string, file: string, reason: string): Promise<void> {
  let head = "";
  await readLines(file, (line) => {
    head = line.toString("utf8");
  });
  const deleted = { file: path.relative(folder, file), deletedAt: new Date().toISOString(), reason, head };
  const list = path.join(folder, DELETED);
  try {
    // The line comes first: a recording that is gone without one would look stolen.
    await appendFile(list, `${JSON.stringify(deleted)}\n`, { mode: 0o600 });
  } catch (error) {
    throw fileErrorOf(error, list);
  }
  await rm(`${file}${UPLOADED}`, { force: true });
  await unlink(file).catch((error: unknown) => {
    throw fileErrorOf(error, file);
  });
}
