import { FORMAT, formatOf, parseHeader, type RecordedHeader } from "./asciicast.ts";
import {
  COMMENT,
  chunkLine,
  digestLine,
  digestOf,
  EXPLICIT_SALTS,
  LineChain,
  type RecordingHead,
  saltLine,
  saltOf,
  seedLine,
} from "./chain.ts";
import { lineWith, parseHead } from "./signed-head.ts";

export interface CheckedRecording {
  /** `truncated`: unchanged as far as it goes, but the last line (the head) is missing. */
  readonly verdict: "unchanged" | "changed" | "truncated" | "not-a-recording" | "newer-format";
  /** The chunk that contains the change, counted from 1; 0 is the beginning of the file. */
  readonly chunk: number;
  readonly problem?: string | undefined;
  readonly header?: RecordedHeader | undefined;
  readonly head?: RecordingHead | undefined;
  readonly signature?: string | undefined;
  /** Lines that an export replaced by their digests. */
  readonly redacted: number;
  /** Whether the header is one of them: then only its session and its start are proven. */
  readonly isHeaderRedacted: boolean;
}

class Changed extends Error {}

/** The lengths that the format gives them. */
const SALT_BYTES = 16;
const DIGEST_BYTES = 32;
/** What `sluice recordings export` writes in place of a redacted event. */
const REDACTED_EVENT = /^\[\d+\.\d{3}, "m", "redacted"\]$/;

/**
 * Checks a recording line by line against its own chain. Sluice's comments must match byte for byte
 * what the recorder writes. Pure; `isSignedBy` checks the signature.
 */
export class RecordingCheck {
  #chain: LineChain | undefined;
  #seed: Buffer | undefined;
  #header: RecordedHeader | undefined;
  #headerLine: Buffer | undefined;
  /** With explicit salts, the line whose salt or digest comes next. */
  #pending: Buffer | undefined;
  #head: RecordingHead | undefined;
  #signature: string | undefined;
  #redacted = 0;
  #isHeaderRedacted = false;
  #problem: string | undefined;
  #chunk = 0;
  #format = FORMAT;

  /** Checks one line, given without its line feed. */
  line(bytes: Buffer): void {
    if (this.#problem !== undefined || this.#format > FORMAT) return;
    this.#chunk = this.#headerLine === undefined ? 0 : (this.#chain?.chunks ?? -1) + 1;
    try {
      this.#take(bytes);
    } catch (error) {
      if (!(error instanceof Changed)) throw error;
      this.#problem = error.message;
    }
  }

  /** `rest`: the bytes after the last line feed. */
  end(rest: Uint8Array): CheckedRecording {
    const isWhole = this.#head !== undefined && rest.byteLength === 0;
    const found = {
      chunk: this.#problem === undefined ? (this.#chain?.chunks ?? 0) : this.#chunk,
      header: this.#header,
      redacted: this.#redacted,
      isHeaderRedacted: this.#isHeaderRedacted,
    };
    if (this.#format > FORMAT) {
      const problem = `it has format ${this.#format}, and this program reads ${FORMAT}`;
      return { ...found, verdict: "newer-format", problem };
    }
    if (this.#chain === undefined && this.#header?.sluice === undefined) {
      const problem = this.#header === undefined ? "it does not begin as one" : "it is not one of Sluice";
      return { ...found, verdict: "not-a-recording", problem };
    }
    if (this.#problem !== undefined) return { ...found, verdict: "changed", problem: this.#problem };
    if (isWhole) return { ...found, verdict: "unchanged", head: this.#head, signature: this.#signature };
    if (this.#head !== undefined)
      return { ...found, verdict: "changed", problem: "it goes on after its end" };
    return { ...found, verdict: "truncated", problem: "it has no signed end" };
  }

  #take(bytes: Buffer): void {
    if (this.#head !== undefined) throw new Changed("it goes on after its end");
    if (this.#headerLine === undefined) {
      this.#headerLine = Buffer.from(bytes);
      this.#header = parseHeader(textOf(bytes));
      this.#format = formatOf(textOf(bytes));
      if (this.#header === undefined) throw new Changed("it does not begin as a recording");
    } else if (this.#chain === undefined) this.#begin(textOf(bytes));
    else if (bytes.subarray(0, COMMENT.length).toString("latin1") === COMMENT)
      this.#comment(textOf(bytes), this.#chain);
    else this.#event(bytes, this.#chain);
  }

  /** Reads the second line: the seed of all salts, or a note that each line has its own. */
  #begin(text: string): void {
    const { seed } = commentOf(text);
    const isExplicit = text === EXPLICIT_SALTS;
    if (!isExplicit && typeof seed !== "string") throw new Changed("it has no salts");
    this.#seed = isExplicit ? undefined : Buffer.from(String(seed), "base64");
    if (this.#seed !== undefined) requireSame(text, seedLine(this.#seed));
    this.#chain = new LineChain(this.#seed ?? Buffer.alloc(0));
    const header = this.#headerLine as Buffer;
    if (this.#seed === undefined) this.#pending = header;
    else this.#chain.beginWith(digestOf(saltOf(this.#seed, 0), header));
  }

  #event(bytes: Buffer, chain: LineChain): void {
    if (this.#seed !== undefined) {
      chain.addDigest(digestOf(saltOf(this.#seed, chain.lines + 1), bytes));
      return;
    }
    if (this.#pending !== undefined) throw new Changed("a line has no salt");
    this.#pending = Buffer.from(bytes);
  }

  #comment(text: string, chain: LineChain): void {
    const comment = commentOf(text);
    if (typeof comment.salt === "string" || typeof comment.digest === "string")
      this.#salt(comment, text, chain);
    else if (comment.chunk !== undefined) closeChunk(comment, text, chain);
    else if (comment.head !== undefined) this.#end(comment, text, chain);
    else throw new Changed("it has a comment that no recorder writes");
  }

  #salt({ salt, digest }: Comment, text: string, chain: LineChain): void {
    const line = this.#pending;
    if (line === undefined) throw new Changed("it has a salt without a line");
    const isBeginning = line === this.#headerLine;
    this.#pending = undefined;
    const bytes = Buffer.from(String(salt ?? digest), "base64");
    requireSame(text, digest === undefined ? saltLine(bytes) : digestLine(bytes));
    // With a longer salt, the start of a line could be moved into it.
    if (bytes.byteLength !== (digest === undefined ? SALT_BYTES : DIGEST_BYTES))
      throw new Changed("it has a salt or a digest of another length");
    if (digest !== undefined) this.#redact(line, isBeginning);
    const own = digest === undefined ? digestOf(bytes, line) : bytes;
    if (isBeginning) chain.beginWith(own);
    else chain.addDigest(own);
  }

  /** The digest proves the line that was there. What stands in its place proves nothing, and may claim nothing. */
  #redact(line: Buffer, isBeginning: boolean): void {
    this.#redacted += 1;
    this.#isHeaderRedacted ||= isBeginning;
    const { command, sluice } = this.#header ?? {};
    const isEmpty = isBeginning
      ? command === undefined && sluice?.command.length === 0
      : REDACTED_EVENT.test(textOf(line));
    if (!isEmpty) throw new Changed("it has other text in place of a redacted line");
  }

  #end({ head, sig }: Comment, text: string, chain: LineChain): void {
    const found = parseHead(head);
    if (found === undefined) throw new Changed("its end is not written as it should be");
    requireSame(text, lineWith(found, String(sig)));
    const signature = String(sig);
    if (Buffer.from(signature, "base64").toString("base64") !== signature)
      throw new Changed("its signature is not written as it should be");
    if (chain.open > 0 || this.#pending !== undefined || found.hash !== chain.hash)
      throw new Changed("its end does not fit what is before it");
    if (found.chunks !== chain.chunks || found.lines !== chain.lines)
      throw new Changed("its end counts other lines");
    if (this.#header?.sluice !== undefined && this.#header.sluice.session !== found.session)
      throw new Changed("its end is of another session");
    if (this.#header?.sluice !== undefined && this.#header.sluice.startedAt !== found.startedAt)
      throw new Changed("its end is of another start");
    this.#head = found;
    this.#signature = signature;
  }
}

type Comment = Readonly<Record<string, unknown>>;

function closeChunk(comment: Comment, text: string, chain: LineChain): void {
  const atMs = Date.parse(String(comment.at));
  if (!Number.isFinite(atMs)) throw new Changed("a chunk has no time");
  const lines = chain.open;
  const expected = chain.close(atMs);
  if (text === expected) return;
  if (comment.chunk !== chain.chunks) throw new Changed("a chunk is missing or in another place");
  if (comment.lines !== lines) throw new Changed("lines are missing or were added");
  requireSame(text, chunkLine(comment as unknown as Parameters<typeof chunkLine>[0]));
  throw new Changed("its lines do not have the chunk's hash");
}

function commentOf(text: string): Comment {
  try {
    const comment: unknown = JSON.parse(text.slice(COMMENT.length));
    if (typeof comment === "object" && comment !== null) return comment as Comment;
  } catch {
    // Thrown below.
  }
  throw new Changed("it has a comment that no recorder writes");
}

function requireSame(text: string, expected: string): void {
  if (text !== expected) throw new Changed("a comment is not written as it should be");
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Changed("it is not UTF-8");
  }
}
