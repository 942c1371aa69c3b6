import { parseEvent, parseHeader, type RecordedEvent, type RecordedHeader } from "../format/asciicast.ts";
import { COMMENT, type RecordingHead } from "../format/chain.ts";
import { parseHeadLine } from "../format/signed-head.ts";
import { RecordingFileError } from "./recording-file-error.ts";
import { readLines } from "./recording-lines.ts";

interface RecordingSummary {
  readonly header: RecordedHeader;
  readonly seconds: number;
  readonly exitCode: string | undefined;
  /** Absent if the recording is unfinished. Not verified here. */
  readonly head: RecordingHead | undefined;
}

interface RecordingReader {
  /** Gets the first line once it is known to be a header. */
  onHeader?(line: string, header: RecordedHeader): void;
  /** Gets each event and its time. Resolves, if it is a promise, when the next event may come. */
  onEvent?(event: RecordedEvent, seconds: number): Promise<void> | void;
  /** Reading ends early once it aborts. */
  readonly signal?: AbortSignal;
}

/** Reads a recording, of which it keeps one line. Rejects with RecordingFileError if the file is not an asciicast v3. */
export async function readRecording(file: string, reader: RecordingReader = {}): Promise<RecordingSummary> {
  let header: RecordedHeader | undefined;
  let head: RecordingHead | undefined;
  let exitCode: string | undefined;
  let seconds = 0;
  const onLine = (bytes: Buffer): Promise<void> | void => {
    const line = bytes.toString("utf8");
    if (header === undefined) {
      header = headerOf(line, file);
      reader.onHeader?.(line, header);
      return;
    }
    if (line.startsWith(COMMENT)) head = parseHeadLine(line) ?? head;
    const event = parseEvent(line);
    if (event === undefined) return;
    seconds += event.interval;
    if (event.code === "x") exitCode = event.data;
    return reader.onEvent?.(event, seconds);
  };
  await readLines(file, onLine, reader.signal);
  if (header === undefined) throw new RecordingFileError(`${file} is not a recording`);
  return { header, seconds, exitCode, head };
}

/** Throws RecordingFileError if the first line is not an asciicast v3 header. */
export function headerOf(line: string, file: string): RecordedHeader {
  const header = parseHeader(line);
  if (header !== undefined) return header;
  // As `export --format asciicast-v2` writes it.
  const isOlder = /^\{[^{}]{0,100}"version": ?2[,}]/.test(line);
  const what = isOlder ? "an asciicast of version 2; only version 3 is read" : "not a recording";
  throw new RecordingFileError(`${file} is ${what}`);
}
