import { parseEvent, parseHeader, type RecordedEvent, type RecordedHeader } from "../format/asciicast.ts";
import { COMMENT, type RecordingHead } from "../format/chain.ts";
import { readLines } from "./recording-lines.ts";

export interface RecordingSummary {
  readonly header: RecordedHeader;
  readonly seconds: number;
  readonly exitCode: string | undefined;
  /** Absent: the recording is unfinished. It is not verified here. */
  readonly head: RecordingHead | undefined;
}

/** Reads a recording; `onEvent` gets each event and its time. Rejects if it is no asciicast v3. */
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
      header = parseHeader(line);
      if (header === undefined) throw new Error(`${file} is not an asciicast v3`);
      return;
    }
    if (line.startsWith(`${COMMENT}{"head":`)) head = JSON.parse(line.slice(COMMENT.length)).head;
    const event = parseEvent(line);
    if (event === undefined) return;
    seconds += event.interval;
    if (event.code === "x") exitCode = event.data;
    onEvent(event, seconds);
  });
  if (header === undefined) throw new Error(`${file} is empty`);
  return { header, seconds, exitCode, head };
}
