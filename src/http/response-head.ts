import { ByteCollector } from "../../protocols/bytes/index.ts";
import { UpstreamError } from "../net/upstream-error.ts";
import { type HeaderLine, type HeaderList, isHeaderName, trimWhitespace } from "./header-list.ts";

/** Status line and header lines of an HTTP/1.x response (RFC 9112 sections 4 and 5). */
export interface ResponseHead {
  readonly status: number;
  readonly statusMessage: string;
  readonly headers: HeaderList;
}

export interface ReadHead {
  readonly head: ResponseHead;
  /** What came behind the head in the same chunk. */
  readonly rest: Buffer;
}

/** What Kubernetes' tunnel accepts for a response head. */
export const DEFAULT_MAX_RESPONSE_HEAD_BYTES = 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const MAX_QUOTED_CHARACTERS = 64;

/**
 * Collects bytes until a response head is whole. Lines may end in CRLF or LF (RFC 9112 section 2.2; some nodes write
 * bare LF) and the head may be split at any byte. `maxBytes` bounds all heads that are read together, so that endless
 * interim responses end too.
 *
 * `push` throws UpstreamError "response-head-too-large" or "malformed-response"; the reader is finished then.
 */
export class ResponseHeadReader {
  readonly #maxBytes: number;
  #head = new ByteCollector();
  #totalBytes = 0;
  #lineBytes = 0;
  #isLineLoneCr = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Undefined: needs more. */
  push(chunk: Buffer): ReadHead | undefined {
    const end = this.#findEnd(chunk);
    const headBytes = end === -1 ? chunk.length : end;
    this.#totalBytes += headBytes;
    if (this.#totalBytes > this.#maxBytes) {
      throw new UpstreamError("response-head-too-large", "header size limit exceeded");
    }
    this.#head.append(chunk.subarray(0, headBytes));
    if (end === -1) return undefined;

    const { buffer, byteOffset, byteLength } = this.#head.bytes;
    const text = Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
    this.#head = new ByteCollector();
    return { head: parseResponseHead(text), rest: chunk.subarray(end) };
  }

  get hasBytes(): boolean {
    return this.#totalBytes > 0;
  }

  /** Index behind the empty line that ends the head, -1 if it is not in the chunk. Looks at every byte once. */
  #findEnd(chunk: Buffer): number {
    let at = 0;
    while (at < chunk.length) {
      const lineFeed = chunk.indexOf(LF, at);
      const end = lineFeed === -1 ? chunk.length : lineFeed;
      if (end > at) this.#isLineLoneCr = this.#lineBytes === 0 && end === at + 1 && chunk[at] === CR;
      this.#lineBytes += end - at;
      if (lineFeed === -1) return -1;

      const isEmptyLine = this.#lineBytes === 0 || this.#isLineLoneCr;
      this.#lineBytes = 0;
      this.#isLineLoneCr = false;
      if (isEmptyLine) return lineFeed + 1;
      at = lineFeed + 1;
    }
    return -1;
  }
}

function parseResponseHead(text: string): ResponseHead {
  const lines = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  const { status, statusMessage } = parseStatusLine(lines[0] ?? "");
  const folded: FoldedHeader[] = [];
  // The last two elements are the empty line and what follows it: nothing.
  for (const line of lines.slice(1, -2)) addHeaderLine(folded, line);
  const headers = folded.map(({ name, parts }): HeaderLine => [name, trimWhitespace(parts.join(" "))]);
  return { status, statusMessage, headers };
}

function parseStatusLine(line: string): { status: number; statusMessage: string } {
  const space = line.indexOf(" ");
  if (space === -1) throw malformed("malformed HTTP response", line);
  const version = line.slice(0, space);
  if (!/^HTTP\/1\.[01]$/.test(version)) throw malformed("malformed HTTP version", version);
  const [code = "", ...reason] = line.slice(space + 1).split(" ");
  if (!/^[1-9][0-9]{2}$/.test(code)) throw malformed("malformed HTTP status code", code);
  const statusMessage = reason.join(" ");
  if (hasControls(statusMessage)) throw malformed("malformed HTTP response", line);
  return { status: Number(code), statusMessage };
}

/** A header and the lines that continue it, joined once. */
interface FoldedHeader {
  readonly name: string;
  readonly parts: string[];
}

function addHeaderLine(headers: FoldedHeader[], line: string): void {
  // Of a refused line only the part before the colon is quoted: the rest may be a credential.
  const colon = line.indexOf(":");
  const name = line.slice(0, Math.max(colon, 0));
  if (hasControls(line)) throw malformed("malformed MIME header line:", name);
  if (line.startsWith(" ") || line.startsWith("\t")) {
    // obs-fold: a gateway replaces it by one space (RFC 9112 section 5.2).
    const previous = headers.at(-1);
    if (previous === undefined) throw malformed("malformed MIME header initial line:", name);
    const part = trimWhitespace(line);
    if (part !== "") previous.parts.push(part);
    return;
  }
  // A space before the colon is refused, not trimmed: two readers that disagree on it see different messages.
  if (!isHeaderName(name)) throw malformed("malformed MIME header line:", name);
  headers.push({ name, parts: [trimWhitespace(line.slice(colon + 1))] });
}

function hasControls(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the controls are what is looked for
  return /[\x00-\x08\x0a-\x1f\x7f]/.test(text);
}

function malformed(what: string, text: string): UpstreamError {
  return new UpstreamError(
    "malformed-response",
    `${what} ${JSON.stringify(text.slice(0, MAX_QUOTED_CHARACTERS))}`,
  );
}
