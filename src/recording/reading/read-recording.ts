import { parseEvent, parseHeader, type RecordedEvent, type RecordedHeader } from "../format/asciicast.ts";
import { COMMENT, type RecordingHead } from "../format/chain.ts";
import { parseHeadLine } from "../format/signed-head.ts";
import { RecordingFileError } from "./recording-file-error.ts";
import { readLines } from "./recording-lines.ts";

export interface RecordingSummary {
  readonly header: RecordedHeader;
  readonly seconds: number;
  readonly exitCode: string | undefined;
  /** Absent if the recording is unfinished. Not verified here. */
  readonly head: RecordingHead | undefined;
}

/**
 * Reads a recording, and calls `onEvent` with each event and its time. Rejects with RecordingFileError
 * if the file is not an asciicast v3.
 */
export async function readRecording(
  file: string,
  onEvent: (event: RecordedEvent, seconds: number) => void = () => {},
): Promise<RecordingSummary> {
  let header: RecordedHeader | undefined;
  let head: RecordingHead | undefined;
  let exitCode: string | undefined;
  let seconds = 0;
  await readLines(file, (bytes) => {
    const line = bytes.toString("utf8");
    if (header === undefined) {
      header = headerOf(line, file);
      return;
    }
    if (line.startsWith(COMMENT)) head = parseHeadLine(line) ?? head;
    const event = parseEvent(line);
    if (event === undefined) return;
    seconds += event.interval;
    if (event.code === "x") exitCode = event.data;
    onEvent(event, seconds);
  });
  if (header === undefined) throw new RecordingFileError(`${file} is not a recording`);
  return { header, seconds, exitCode, head };
}

/** Throws RecordingFileError if the first line is not an asciicast v3 header. */
export function headerOf(line: string, file: string): RecordedHeader {
  const header = parseHeader(line);
  if (header === undefined) throw new RecordingFileError(`${file} is not a recording`);
  return header;
}
