import { createHash, type Hash, type KeyObject, randomBytes } from "node:crypto";
import {
  DEFAULT_SIZE,
  type EventCode,
  EventLines,
  headerLine,
  type RecordedFacts,
  type TerminalSize,
} from "../format/asciicast.ts";
import { LineChain, seedLine } from "../format/chain.ts";
import { EchoedInput } from "../format/echoed-input.ts";
import type { OutputLine } from "../format/output-line.ts";
import { headLine, keyNameOf } from "../format/signed-head.ts";
import { type DecodedPart, TextStream } from "../format/text-stream.ts";
import { ArchiveRecord } from "./archive-record.ts";
import type { RecordingFile } from "./recording-file.ts";
import type { BegunRecording, FinishedRecording } from "./thread-messages.ts";

/** A chunk of the chain ends after this many bytes, or after SYNC_MS (recording-service.ts). */
const CHUNK_BYTES = 256 * 1024;
/** Output in invalid UTF-8 whose bytes are kept. Past it: only the length and digest of each part. */
const MAX_BINARY_BYTES = 1024 * 1024;
/** A terminal size that arrives this soon is written into the header. */
const FIRST_SIZE_MS = 1_000;

type OutputStream = "stdout" | "stderr";

/** Output that is missing from the recording. */
interface Gap {
  readonly fromMs: number;
  readonly hash: Hash;
  bytes: number;
}

/**
 * Encodes one session and appends it to its file. While the file cannot be written, counts and digests
 * the output; afterwards records the gap as an event.
 */
export class SessionWriter {
  readonly #file: RecordingFile;
  readonly #key: KeyObject;
  readonly #facts: RecordedFacts;
  readonly #chain: LineChain;
  readonly #events = new EventLines();
  readonly #archive: ArchiveRecord | undefined;
  readonly #echo: EchoedInput | undefined;
  readonly #texts = { stdout: new TextStream(), stderr: new TextStream() };
  #stream: OutputStream = "stdout";
  /** Output of one stream and millisecond. */
  #run: { readonly ms: number; readonly line: OutputLine } | undefined;
  #header: string | undefined;
  #bytesOfChunk = 0;
  #returnedChunk = 0;
  #binaryBytes = 0;
  #bytes = 0;
  #gaps = 0;
  #gap: Gap | undefined;
  #onGap: (bytes: number) => void = () => {};

  constructor(file: RecordingFile, { facts, maxOutputBytes }: BegunRecording, key: KeyObject) {
    const seed = randomBytes(32);
    this.#file = file;
    this.#facts = facts;
    this.#key = key;
    this.#archive =
      facts.archive === undefined
        ? undefined
        : new ArchiveRecord(maxOutputBytes, (timeMs, code, data) => this.event(timeMs, code, data));
    this.#echo = facts.record === "all" && facts.tty ? new EchoedInput() : undefined;
    this.#chain = new LineChain(seed);
    this.#header = headerLine(facts, DEFAULT_SIZE);
    file.append(lineOf(this.#header));
    file.append(lineOf(seedLine(seed)));
  }

  /** Sets the function that is called when a gap has ended. */
  onGap(listener: (bytes: number) => void): void {
    this.#onGap = listener;
  }

  output(stream: OutputStream, timeMs: number, bytes: Uint8Array): void {
    this.#bytes += bytes.byteLength;
    const isPacked = stream === "stdout" && this.#facts.archive === "pack";
    const shown = isPacked ? this.#archive?.push(timeMs, bytes) : bytes;
    if (this.#gap !== undefined) {
      this.#gap.bytes += bytes.byteLength;
      this.#gap.hash.update(bytes);
      return;
    }
    const part = shown && this.#texts[stream].push(shown);
    if (part !== undefined) this.#show(stream, timeMs, part);
  }

  /** Takes what the client sent. Records it as lines that the terminal echoed, or as an archive's digests. */
  input(timeMs: number, bytes: Uint8Array): void {
    this.#echo?.type(bytes, timeMs);
    if (this.#facts.archive === "unpack") this.#archive?.take(timeMs, bytes);
  }

  resize(timeMs: number, size: TerminalSize): void {
    if (this.#header !== undefined && timeMs <= FIRST_SIZE_MS) {
      this.#header = headerLine(this.#facts, size);
      this.#rewriteHeader(this.#header);
      this.#beginChain();
      return;
    }
    this.event(timeMs, "r", `${size.columns}x${size.rows}`);
  }

  /** Dropped during a gap, as output is, unless `isKept`. */
  event(timeMs: number, code: EventCode, data: string, isKept = false): void {
    if (this.#gap !== undefined && !isKept) return;
    this.#endRun();
    this.#append(lineOf(this.#events.line(timeMs, code, data)));
  }

  /** Records a gap that arose before the output reached this writer. */
  lost(timeMs: number, bytes: number, seconds: number, sha256: string): void {
    this.#bytes += bytes;
    this.#showHeld(timeMs, this.#archive?.breakOff(timeMs));
    this.#noteGap(timeMs, bytes, seconds, sha256);
  }

  /** Counts output beyond the limit, or the bytes of port-forwards. */
  counted(timeMs: number, bytes: number): void {
    this.#bytes += bytes;
    if (this.#facts.subresource === "portforward") return;
    this.event(timeMs, "m", `output beyond the bound of the recording: ${bytes} bytes`, true);
  }

  /** Writes pending lines. If that fails, begins a gap and returns the error. */
  flush(timeMs: number): Error | undefined {
    this.#endRun();
    try {
      this.#file.flush();
    } catch (error) {
      this.#gap ??= { fromMs: timeMs, hash: createHash("sha256"), bytes: 0 };
      return error as Error;
    }
    this.#endGap(timeMs);
    return undefined;
  }

  /** Ends the chunk if it has lines, except during a gap. */
  endChunk(atMs: number): void {
    this.#archive?.announce();
    this.#endRun();
    if (this.#chain.open === 0 || this.#gap !== undefined) return;
    this.#closeChunk(atMs);
  }

  /** The last chunk; undefined if an earlier call returned it. */
  lastChunk(): { readonly chunk: number; readonly hash: string } | undefined {
    const { chunks: chunk, hash } = this.#chain;
    if (chunk === this.#returnedChunk) return undefined;
    this.#returnedChunk = chunk;
    return { chunk, hash };
  }

  /** Appends the last events, chunk and head. `exitCode`: undefined if the node reported none. */
  end(timeMs: number, atMs: number, cause: string, exitCode: number | undefined): FinishedRecording {
    this.#showHeld(timeMs, this.#archive?.end(timeMs));
    this.#echo?.end();
    this.#markHidden(timeMs);
    for (const stream of ["stdout", "stderr"] as const) {
      const rest = this.#texts[stream].flush();
      if (rest !== undefined && this.#gap === undefined) this.#show(stream, timeMs, rest);
    }
    this.#endRun();
    this.#endGap(timeMs);
    if (exitCode === undefined) this.#append(lineOf(this.#events.line(timeMs, "m", `ended: ${cause}`)));
    else this.#append(lineOf(this.#events.line(timeMs, "x", String(exitCode))));
    this.#closeChunk(atMs);
    const { session, startedAt } = this.#facts;
    const head = {
      bytes: this.#bytes,
      chunks: this.#chain.chunks,
      end: cause,
      // Not the wall clock, which may have been set back since the start.
      endedAt: new Date(Date.parse(startedAt) + Math.max(0, Math.round(timeMs))).toISOString(),
      gaps: this.#gaps,
      hash: this.#chain.hash,
      key: keyNameOf(this.#key),
      lines: this.#chain.lines,
      session,
      startedAt,
    };
    this.#file.append(lineOf(headLine(head, this.#key)));
    return { hash: head.hash, key: head.key, gaps: head.gaps };
  }

  #show(stream: OutputStream, timeMs: number, { bytes, isText }: DecodedPart): void {
    if (stream !== this.#stream) {
      this.#stream = stream;
      this.event(timeMs, "s", stream);
    }
    if (isText) this.#showText(timeMs, bytes);
    else this.#showBinary(timeMs, bytes);
    if (this.#echo !== undefined) this.#showEcho(this.#echo, timeMs, bytes.toString("utf8"));
  }

  #showHeld(timeMs: number, held: Uint8Array | undefined): void {
    const part = held && this.#gap === undefined ? this.#texts.stdout.push(held) : undefined;
    if (part !== undefined) this.#show("stdout", timeMs, part);
  }

  /** Echoed input is recorded after the output that shows it. */
  #showEcho(echo: EchoedInput, timeMs: number, text: string): void {
    for (const line of echo.show(text, timeMs)) {
      this.#markHidden(timeMs);
      this.event(timeMs, "i", `${line}\r`);
    }
  }

  #markHidden(timeMs: number): void {
    if (this.#echo?.takeHidden())
      this.event(timeMs, "m", "input that the terminal did not echo as it was typed");
  }

  #showText(timeMs: number, bytes: Buffer): void {
    const ms = Math.round(timeMs);
    if (this.#run?.ms !== ms) {
      this.#endRun();
      this.#run = { ms, line: this.#events.output(timeMs, bytes.byteLength) };
    }
    this.#run.line.add(bytes);
  }

  #showBinary(timeMs: number, bytes: Buffer): void {
    this.#binaryBytes += bytes.byteLength;
    if (this.#binaryBytes > MAX_BINARY_BYTES) {
      const sha256 = createHash("sha256").update(bytes).digest("base64");
      this.event(timeMs, "d", JSON.stringify({ bytes: bytes.byteLength, sha256 }));
      return;
    }
    this.event(timeMs, "o", bytes.toString("utf8"));
    this.event(timeMs, "b", bytes.toString("base64"));
  }

  #endRun(): void {
    const run = this.#run;
    if (run === undefined) return;
    this.#run = undefined;
    this.#append(run.line.end(), run.line);
  }

  #endGap(timeMs: number): void {
    const gap = this.#gap;
    if (gap === undefined) return;
    this.#gap = undefined;
    if (gap.bytes === 0) return;
    // A character that the gap cut apart is recorded on neither side.
    for (const text of Object.values(this.#texts)) text.flush();
    this.#noteGap(timeMs, gap.bytes, (timeMs - gap.fromMs) / 1_000, gap.hash.digest("base64"));
    this.#onGap(gap.bytes);
  }

  #noteGap(timeMs: number, bytes: number, seconds: number, sha256: string): void {
    this.#gaps += 1;
    const duration = Number(seconds.toFixed(3));
    this.event(timeMs, "g", JSON.stringify({ bytes, seconds: duration, sha256 }), true);
    this.event(timeMs, "m", `gap: ${bytes} bytes, ${duration} s, sha256:${sha256}`, true);
  }

  #append(line: Buffer, lent?: OutputLine): void {
    this.#beginChain();
    this.#file.append(line, lent);
    this.#chain.add(line.subarray(0, -1));
    this.#bytesOfChunk += line.byteLength;
    if (this.#bytesOfChunk >= CHUNK_BYTES) this.#closeChunk(Date.now());
  }

  /** Begins the chain; after this the header must not change. */
  #beginChain(): void {
    if (this.#header === undefined) return;
    this.#chain.begin(this.#header);
    this.#header = undefined;
  }

  #rewriteHeader(header: string): void {
    try {
      this.#file.flush();
      this.#file.rewriteStart(header);
    } catch {
      // The file still has the header that it began with.
      this.#header = headerLine(this.#facts, DEFAULT_SIZE);
    }
  }

  #closeChunk(atMs: number): void {
    this.#bytesOfChunk = 0;
    this.#file.append(lineOf(this.#chain.close(atMs)));
  }
}

function lineOf(text: string): Buffer {
  return Buffer.from(`${text}\n`, "utf8");
}
