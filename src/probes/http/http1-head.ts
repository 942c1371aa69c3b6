import { isUtf8 } from "node:buffer";
import { goQuote } from "../../api/go-json.ts";
import { ExchangeError } from "../exchange-error.ts";

export interface Http1Head {
  readonly status: number;
  /** Lower-case names to their values, in order. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
}

const STATUS_CODE = /^[0-9]{3}$/;
const HTTP_VERSION = /^HTTP\/\d\.\d$/;
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
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
  const lines = bytes.toString("latin1").split("\n");
  const [first = ""] = lines;
  const line = withoutCarriageReturn(first);
  const space = line.indexOf(" ");
  if (space === -1) throw broken(`malformed HTTP response ${quote(line)}`);
  const code = line.slice(space).trimStart().split(" ", 1)[0] ?? "";
  if (!STATUS_CODE.test(code)) throw broken(`malformed HTTP status code ${goQuote(code)}`);
  if (!HTTP_VERSION.test(line.slice(0, space))) {
    throw broken(`malformed HTTP version ${quote(line.slice(0, space))}`);
  }
  const headers = new Map<string, string[]>();
  let last: string[] | undefined;
  for (let index = 1; index < lines.length; index++) {
    const text = withoutCarriageReturn(lines[index] as string);
    if (text === "") continue;
    if (text.startsWith(" ") || text.startsWith("\t")) {
      if (last === undefined) throw broken(`malformed MIME header initial line: ${quote(text)}`);
      last.push(`${last.pop()} ${text.trim()}`);
      continue;
    }
    const colon = text.indexOf(":");
    if (colon === -1) throw broken(`malformed MIME header: missing colon: ${quote(text)}`);
    const name = text.slice(0, colon).toLowerCase();
    if (!FIELD_NAME.test(name)) throw broken(`malformed MIME header line: ${quote(text)}`);
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

function withoutCarriageReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

const MAX_QUOTED_BYTES = 256;

/** Of a text each of whose characters is a byte. */
function quote(latin1: string): string {
  const shown = Buffer.from(latin1.slice(0, MAX_QUOTED_BYTES), "latin1");
  if (isUtf8(shown)) return goQuote(shown.toString());
  return `"${Array.from(shown, quoteByte).join("")}"`;
}

function quoteByte(byte: number): string {
  if (byte >= 0x80) return `\\x${byte.toString(16)}`;
  return goQuote(String.fromCharCode(byte)).slice(1, -1);
}
