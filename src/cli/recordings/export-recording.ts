import { stat } from "node:fs/promises";
import { quietJson } from "../../observability/mask-controls.ts";
import { parseEvent, parseHeader, type RecordedEvent } from "../../recording/format/asciicast.ts";
import {
  digestLine,
  digestOf,
  EXPLICIT_SALTS,
  parseSeed,
  saltLine,
  saltOf,
} from "../../recording/format/chain.ts";
import { TerminalFilter, TextLines } from "../../recording/format/terminal-filter.ts";
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
      if (isRedacted) await exportRedacted(file, redact, redactsCommand);
      else await exportLines(file);
      return 0;
    case "asciicast-v2":
      await exportVersion2(file);
      return 0;
    default:
      await exportOutput(file, format, stream);
      return 0;
  }
}

async function exportLines(file: string, redaction?: Redaction): Promise<void> {
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

/** Reads the file twice: events that share a text are known only after the last of them. */
async function exportRedacted(
  file: string,
  texts: readonly string[],
  redactsCommand: boolean,
): Promise<void> {
  const shared = new SharedTexts(texts);
  if (texts.length > 0 && (await stat(file).catch(() => undefined))?.isFIFO())
    throw new RecordingFileError(`${file} is a pipe, which --redact cannot read twice: save it first`);
  if (texts.length > 0) await readRecording(file, { onEvent: (event) => shared.add(event) });
  const redaction = new Redaction(file, texts, redactsCommand, shared);
  await exportLines(file, redaction);
  const missing = new Set(texts).size - redaction.found.size;
  if (missing === 0) return;
  process.stderr.write(`warning: no event has ${missing} of the ${new Set(texts).size} texts to redact\n`);
}

/** Finds texts that several events of output share, as a shell's echo of each typed key. */
class SharedTexts {
  readonly found = new Set<string>();
  /** Events that have a part of a text; the first is 1. */
  readonly events = new Set<number>();
  readonly #texts: readonly string[];
  readonly #longest: number;
  /** Each stream's latest characters, and the events that they came from. */
  readonly #tails = new Map<string, { text: string; parts: [index: number, length: number][] }>();
  #stream = "stdout";
  #index = 0;

  constructor(texts: readonly string[]) {
    this.#texts = texts;
    this.#longest = Math.max(0, ...texts.map(({ length }) => length));
  }

  add({ code, data }: RecordedEvent): void {
    this.#index += 1;
    if (code === "s") this.#stream = data;
    if (code !== "o" || data === "") return;
    const tail = this.#tails.get(this.#stream) ?? { text: "", parts: [] };
    const whole = tail.text + data;
    const parts: [number, number][] = [...tail.parts, [this.#index, data.length]];
    for (const text of this.#texts)
      for (let at = whole.indexOf(text); at !== -1; at = whole.indexOf(text, at + 1))
        this.#mark(text, at, parts);
    let extra = Math.max(0, whole.length - this.#longest + 1);
    const text = whole.slice(extra);
    while (extra > 0) {
      const [first] = parts as [[number, number]];
      const cut = Math.min(extra, first[1]);
      extra -= cut;
      first[1] -= cut;
      if (first[1] === 0) parts.shift();
    }
    this.#tails.set(this.#stream, { text, parts });
  }

  #mark(text: string, at: number, parts: readonly (readonly [index: number, length: number])[]): void {
    this.found.add(text);
    let begin = 0;
    for (const [index, length] of parts) {
      if (begin < at + text.length && begin + length > at) this.events.add(index);
      begin += length;
    }
  }
}

/** Replaces lines but keeps their digests. Writes the salt of each line that stays after it. */
class Redaction {
  readonly #file: string;
  readonly #texts: readonly string[];
  readonly #redactsCommand: boolean;
  readonly #shared: SharedTexts;
  /** The texts that were found. */
  readonly found: Set<string>;
  #header: string | undefined;
  #seed: Buffer | undefined;
  #index = 0;
  #isLastShared = false;

  constructor(file: string, texts: readonly string[], redactsCommand: boolean, shared: SharedTexts) {
    this.#file = file;
    this.#texts = texts;
    this.#redactsCommand = redactsCommand;
    this.#shared = shared;
    this.found = shared.found;
  }

  line(line: string): string[] {
    if (this.#header === undefined) {
      // Events of an unknown code would not be redacted.
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
    const hits = this.#texts.filter((text) => hasText(code, data, text));
    for (const text of hits) this.found.add(text);
    // Exact bytes follow the output that they are of.
    const isShared = code === "b" ? this.#isLastShared : this.#shared.events.has(this.#index);
    this.#isLastShared = isShared;
    if (hits.length === 0 && !isShared) return [line, saltLine(saltOf(this.#seed, this.#index))];
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
    const { command: shown = "", ...rest } = parsed ?? {};
    const facts = { ...parsed?.sluice, command: [] };
    const left = JSON.stringify({ ...rest, sluice: facts });
    const command = parsed?.sluice?.command ?? [];
    for (const text of this.#texts) {
      if (valuesOf({ ...rest, sluice: facts }).some((value) => value.includes(text)))
        throw new RecordingFileError(`${this.#file} has this text in its header, beside the command line`);
      if (![shown, ...command, command.join(" ")].some((each) => each.includes(text))) continue;
      this.found.add(text);
      if (!this.#redactsCommand)
        throw new RecordingFileError(`${this.#file} has this text in its command line: add --redact-command`);
    }
    if (!this.#redactsCommand) return [header, EXPLICIT_SALTS, saltLine(salt)];
    return [left, EXPLICIT_SALTS, digestLine(digestOf(salt, header))];
  }
}

/** The texts in a value of JSON. */
function valuesOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(valuesOf) : [];
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
  const [filter, lines] = [new TerminalFilter(), new TextLines()];
  let current = "stdout";
  let held: Buffer | undefined;
  const write = (bytes: Buffer | undefined): Promise<void> | void => {
    if (bytes === undefined) return;
    return writeOut(format === "raw" ? bytes : lines.push(filter.push(bytes.toString("utf8"))));
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
  process.stdout.write(lines.end());
}
