import { createHash } from "node:crypto";

/** The format's name is part of every digest, so that digests of other formats or versions never match. */
const DOMAIN = "sluice-recording/1";
/** The prefix of Sluice's comments in a recording. Players skip comments. */
export const COMMENT = "# sluice ";

/** The signed facts in a recording's last line, as JSON with keys in alphabetical order. */
export interface RecordingHead {
  /** Bytes of output, whether recorded or only counted. */
  readonly bytes: number;
  readonly chunks: number;
  /** The cause of the session's end; `crash` or `write-failed` if a search finished the recording. */
  readonly end: string;
  readonly endedAt: string;
  readonly gaps: number;
  /** The last chunk's hash, in base64. */
  readonly hash: string;
  /** The signing key's name. */
  readonly key: string;
  /** Number of event lines. */
  readonly lines: number;
  readonly session: string;
  readonly startedAt: string;
}

/**
 * Digests a recording's lines and chains the digests. Each line has its own salt, so that an export can
 * drop a line and its salt, and keep only the digest.
 */
export class LineChain {
  readonly #seed: Uint8Array;
  #digests: Buffer[] = [];
  #hash: Buffer = Buffer.alloc(0);
  #chunks = 0;
  #lines = 0;

  constructor(seed: Uint8Array) {
    this.#seed = seed;
  }

  get chunks(): number {
    return this.#chunks;
  }

  /** Number of event lines, without the header. */
  get lines(): number {
    return this.#lines;
  }

  /** Number of lines since the last chunk. */
  get open(): number {
    return this.#digests.length;
  }

  get hash(): string {
    return this.#hash.toString("base64");
  }

  begin(header: string): void {
    this.beginWith(digestOf(saltOf(this.#seed, 0), header));
  }

  /** Begins with the digest of a redacted header. */
  beginWith(digest: Uint8Array): void {
    this.#hash = createHash("sha256").update(`${DOMAIN} header\n`).update(digest).digest();
  }

  add(line: string | Uint8Array): void {
    this.addDigest(digestOf(saltOf(this.#seed, this.#lines + 1), line));
  }

  /** Adds the digest of a redacted line. */
  addDigest(digest: Uint8Array): void {
    this.#lines += 1;
    this.#digests.push(Buffer.from(digest));
  }

  /** Ends a chunk at this time, and returns its comment line. */
  close(atMs: number): string {
    this.#chunks += 1;
    const lines = this.#digests.length;
    const numbers = Buffer.alloc(24);
    numbers.writeBigUInt64BE(BigInt(this.#chunks), 0);
    numbers.writeBigUInt64BE(BigInt(lines), 8);
    numbers.writeBigInt64BE(BigInt(atMs), 16);
    const hash = createHash("sha256").update(`${DOMAIN} chunk\n`).update(this.#hash).update(numbers);
    for (const digest of this.#digests) hash.update(digest);
    this.#hash = hash.digest();
    this.#digests = [];
    return chunkLine({ chunk: this.#chunks, lines, at: new Date(atMs).toISOString(), hash: this.hash });
  }
}

interface ChunkComment {
  readonly chunk: number;
  readonly lines: number;
  readonly at: string;
  readonly hash: string;
}

export function chunkLine({ chunk, lines, at, hash }: ChunkComment): string {
  return `${COMMENT}${JSON.stringify({ chunk, lines, at, hash })}`;
}

export function seedLine(seed: Uint8Array): string {
  return `${COMMENT}${JSON.stringify({ seed: Buffer.from(seed).toString("base64") })}`;
}

/** Undefined if `seedLine` did not write the line. */
export function parseSeed(line: string): Buffer | undefined {
  const [, seed] = /^# sluice \{"seed":"([\w+/]+=*)"\}$/.exec(line) ?? [];
  return seed === undefined ? undefined : Buffer.from(seed, "base64");
}

/** The salt of a line: 0 is the header, 1 the first event. */
export function saltOf(seed: Uint8Array, index: number): Buffer {
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(BigInt(index));
  return createHash("sha256").update(seed).update(number).digest().subarray(0, 16);
}

export function digestOf(salt: Uint8Array, line: string | Uint8Array): Buffer {
  const bytes = typeof line === "string" ? Buffer.from(line, "utf8") : line;
  return createHash("sha256").update(salt).update(bytes).digest();
}

/** Replaces the seed in an export: each line is followed by its salt or its digest. */
export const EXPLICIT_SALTS = `${COMMENT}{"salts":"explicit"}`;

export function saltLine(salt: Uint8Array): string {
  return `${COMMENT}${JSON.stringify({ salt: Buffer.from(salt).toString("base64") })}`;
}

/** Follows a redacted line, and holds the digest of the original. */
export function digestLine(digest: Uint8Array): string {
  return `${COMMENT}${JSON.stringify({ digest: Buffer.from(digest).toString("base64") })}`;
}
