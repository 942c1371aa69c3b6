import { constants } from "node:fs";
import { open, rm, unlink } from "node:fs/promises";
import path from "node:path";
import { RecordingFileError } from "../reading/recording-file-error.ts";
import { readLines } from "../reading/recording-lines.ts";

/** Lists deleted recordings, to distinguish them from recordings that disappeared. */
const DELETED = "deleted.jsonl";
/** Suffix of the file beside an uploaded recording; `ID.cast.uploaded` names the object in the store. */
export const UPLOADED = ".uploaded";

/** Follows no link that was planted at the list's name. */
const APPEND = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
const LINE_FEED = 10;

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
    await appendLine(list, JSON.stringify(deleted));
  } catch (error) {
    throw RecordingFileError.of(error, list);
  }
  await rm(`${file}${UPLOADED}`, { force: true });
  await unlink(file).catch((error: unknown) => {
    throw RecordingFileError.of(error, file);
  });
}

/** On a line of its own, also if a full disk cut the last one. */
async function appendLine(list: string, line: string): Promise<void> {
  const handle = await open(list, APPEND, 0o600);
  try {
    const { size } = await handle.stat();
    const last = Buffer.of(LINE_FEED);
    if (size > 0) await handle.read(last, 0, 1, size - 1);
    await handle.appendFile(`${last[0] === LINE_FEED ? "" : "\n"}${line}\n`);
  } finally {
    await handle.close();
  }
}
