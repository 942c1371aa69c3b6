import { maskControls, quietJson } from "../../observability/mask-controls.ts";
import { parseEvent, parseHeader } from "../../recording/format/asciicast.ts";
import {
  digestLine,
  digestOf,
  EXPLICIT_SALTS,
  parseSeed,
  saltLine,
  saltOf,
} from "../../recording/format/chain.ts";
import { TerminalFilter } from "../../recording/format/terminal-filter.ts";
import { headerOf, readRecording } from "../../recording/reading/read-recording.ts";
import { RecordingFileError } from "../../recording/reading/recording-file-error.ts";
import { readLines } from "../../recording/reading/recording-lines.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/recordings.ts";
import { writeOut } from "../print-text.ts";
import { warnOfNewerFormat } from "./report-file-error.ts";

type Values = Invocation<typeof command.flags>["values"];

/** Writes a recording to standard output in another format. */
export async function exportRecording(file: string, values: Values): Promise<number> {
  const { format, stream, redact, "redact-command": redactsCommand } = values;
  const isRedacted = redact.length > 0 || redactsCommand;
  if (isRedacted && format !== "asciicast-v3") throw new UsageError("--redact is for --format asciicast-v3");
  if (stream !== undefined && format.startsWith("asciicast"))
    throw new UsageError("--stream is for text and raw");
  switch (format) {
    case "asciicast-v3":
      await exportLines(file, isRedacted ? new Redaction(file, redact, redactsCommand) : undefined);
      return 0;
    case "asciicast-v2":
      await exportVersion2(file);
      return 0;
    default:
      await exportOutput(file, format, stream);
      return 0;
  }
}

async function exportLines(file: string, redaction: Redaction | undefined): Promise<void> {
  let isBegun = false;
  const rest = await readLines(file, (line) => {
    if (!isBegun) {
      headerOf(line.toString("utf8"), file);
      if (redaction === undefined) warnOfNewerFormat(line.toString("utf8"), file);
    }
    isBegun = true;
    if (redaction === undefined) return writeOut(Buffer.concat([line, LINE_FEED]));
    const lines = redaction.line(line.toString("utf8"));
    return lines.length === 0 ? undefined : writeOut(`${lines.join("\n")}\n`);
  });
  if (!isBegun) throw new RecordingFileError(`${file} is not a recording`);
  if (rest.byteLength > 0) process.stdout.write(rest);
}

const LINE_FEED = Buffer.from("\n");

/** Replaces lines but keeps their digests. Writes the salt of each line that stays after it. */
class Redaction {
  readonly #file: string;
  readonly #texts: readonly string[];
  readonly #redactsCommand: boolean;
  #header: string | undefined;
  #seed: Buffer | undefined;
  #index = 0;

  constructor(file: string, texts: readonly string[], redactsCommand: boolean) {
    this.#file = file;
    this.#texts = texts;
    this.#redactsCommand = redactsCommand;
  }

  line(line: string): string[] {
    if (this.#header === undefined) {
      // What this program does not know it would not redact.
      warnOfNewerFormat(line, this.#file, true);
      this.#header = line;
      return [];
    }
    if (this.#seed === undefined) return this.#begin(line, this.#header);
    if (!line.startsWith("[")) return [line];
    this.#index += 1;
    const event = parseEvent(line);
    if (event === undefined) throw new RecordingFileError(`${this.#file} has a line that is not an event`);
    const { interval, code, data } = event;
    const isHit = this.#texts.some((text) => hasText(code, data, text));
    if (!isHit) return [line, saltLine(saltOf(this.#seed, this.#index))];
    const digest = digestLine(digestOf(saltOf(this.#seed, this.#index), line));
    return [`[${interval.toFixed(3)}, "m", "redacted"]`, digest];
  }

  #begin(line: string, header: string): string[] {
    if (line === EXPLICIT_SALTS) throw new RecordingFileError(`${this.#file} is redacted already`);
    const seed = parseSeed(line);
    if (seed === undefined) throw new RecordingFileError(`${this.#file} is not a recording of Sluice`);
    this.#seed = seed;
    const salt = saltOf(this.#seed, 0);
    const parsed = parseHeader(header);
    const command = parsed?.sluice?.command ?? [];
    if (!this.#redactsCommand && this.#texts.some((text) => hasText("command", command.join(" "), text)))
      throw new RecordingFileError(`${this.#file} has this text in its command line: add --redact-command`);
    if (!this.#redactsCommand) return [header, EXPLICIT_SALTS, saltLine(salt)];
    const { command: _, ...rest } = parsed ?? {};
    const facts = { ...parsed?.sluice, command: [] };
    return [JSON.stringify({ ...rest, sluice: facts }), EXPLICIT_SALTS, digestLine(digestOf(salt, header))];
  }
}

/** Exact bytes are base64; the facts of archives, gaps and connections are JSON. */
function hasText(code: string, data: string, text: string): boolean {
  if (code === "b") return Buffer.from(data, "base64").includes(text);
  return data.includes(text) || data.includes(JSON.stringify(text).slice(1, -1));
}

const VERSION_2_CODES: ReadonlySet<string> = new Set("oirm");

/**
 * For players that do not know version 3: times count from the start, and our own events are left
 * out.
 */
async function exportVersion2(file: string): Promise<void> {
  await readRecording(file, {
    onHeader: (line, { term, timestamp, command, title }) => {
      warnOfNewerFormat(line, file);
      const first = { version: 2, width: term.cols, height: term.rows, timestamp, command, title };
      process.stdout.write(`${quietJson(first)}\n`);
    },
    onEvent: ({ code, data }, seconds) => {
      if (VERSION_2_CODES.has(code))
        return writeOut(`${quietJson([Number(seconds.toFixed(3)), code, data])}\n`);
    },
  });
}

async function exportOutput(file: string, format: "text" | "raw", stream: string | undefined): Promise<void> {
  const filter = new TerminalFilter();
  let current = "stdout";
  let held: Buffer | undefined;
  const write = (bytes: Buffer | undefined): Promise<void> | void => {
    if (bytes === undefined) return;
    return writeOut(format === "raw" ? bytes : maskControls(plain(filter.push(bytes.toString("utf8")))));
  };
  await readRecording(file, {
    onHeader: (line) => warnOfNewerFormat(line, file),
    onEvent: ({ code, data }) => {
      if (code === "s") current = data;
      const isWanted = stream === undefined || stream === current;
      if (code === "b" && format === "raw" && isWanted) held = Buffer.from(data, "base64");
      if (code !== "o") return;
      const before = held;
      held = isWanted ? Buffer.from(data, "utf8") : undefined;
      return write(before);
    },
  });
  await write(held);
}

/** The text without sequences that move the cursor. */
function plain(text: string): string {
  return text.replace(MOVES, "").replace(/\r\n?/g, "\n");
}

const ESC = String.fromCharCode(27);
const MOVES = new RegExp(`${ESC}(?:\\[[^@-~]*[@-~]|[()*+].|.)`, "g");
