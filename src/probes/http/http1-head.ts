import { isUtf8 } from "node:buffer";
import { goQuote } from "../../api/go-json.ts";
import { ExchangeError } from "../exchange-error.ts";

export interface Http1Head {
  readonly status: number;
  /** Lower-case names to their values, in order. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
}

const LF = 0x0a;
const CR = 0x0d;

/** Where the head's closing empty line ends, looked for from `from` on; -1: not there yet. Lines may end in a bare LF. */
export function endOfHead(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(LF, from); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at + 1] === LF) return at + 2;
    if (bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3;
  }
  return -1;
}

/**
 * Reads a response head as leniently as Go does, which is what decides about containers. Throws ExchangeError in Go's words.
 */
export function parseHttp1Head(bytes: Buffer): Http1Head {
  const lines = linesOf(bytes);
  const first = lines[0] ?? bytes;
  const space = first.indexOf(" ");
  if (space === -1) throw broken(`malformed HTTP response ${quoteBytes(first)}`);
  const code = first.toString("latin1", space).trimStart().split(" ", 1)[0] ?? "";
  if (!/^[0-9]{3}$/.test(code)) throw broken(`malformed HTTP status code ${goQuote(code)}`);
  if (!/^HTTP\/\d\.\d$/.test(first.toString("latin1", 0, space))) {
    throw broken(`malformed HTTP version ${quoteBytes(first.subarray(0, space))}`);
  }
  const headers = new Map<string, string[]>();
  let last: string[] | undefined;
  for (const line of lines.slice(1)) {
    const text = line.toString("latin1");
    if (text === "") continue;
    if (text.startsWith(" ") || text.startsWith("\t")) {
      if (last === undefined) throw broken(`malformed MIME header initial line: ${quoteBytes(line)}`);
      last.push(`${last.pop()} ${text.trim()}`);
      continue;
    }
    const colon = text.indexOf(":");
    if (colon === -1) throw broken(`malformed MIME header: missing colon: ${quoteBytes(line)}`);
    const name = text.slice(0, colon).toLowerCase();
    if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name))
      throw broken(`malformed MIME header line: ${quoteBytes(line)}`);
    last = headers.get(name) ?? [];
    last.push(text.slice(colon + 1).trim());
    headers.set(name, last);
  }
  return { status: Number(code), headers };
}

/** How Go words an answer that is no HTTP/1. */
export function broken(reason: string): ExchangeError {
  return new ExchangeError(`net/http: HTTP/1.x transport connection broken: ${reason}`);
}

function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let start = 0;
  while (start < bytes.length) {
    const found = bytes.indexOf(LF, start);
    const end = found === -1 ? bytes.length : found;
    lines.push(bytes.subarray(start, end > start && bytes[end - 1] === CR ? end - 1 : end));
    start = end + 1;
  }
  return lines;
}

const MAX_QUOTED_BYTES = 256;

function quoteBytes(bytes: Buffer): string {
  const shown = bytes.subarray(0, MAX_QUOTED_BYTES);
  if (isUtf8(shown)) return goQuote(shown.toString());
  return `"${Array.from(shown, quoteByte).join("")}"`;
}

function quoteByte(byte: number): string {
  if (byte >= 0x80) return `\\x${byte.toString(16)}`;
  return goQuote(String.fromCharCode(byte)).slice(1, -1);
}
