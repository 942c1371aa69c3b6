import { type FieldLines, isFieldCharacter, parseFieldLines, unfoldedSection } from "./field-lines.ts";
import type { Leniency } from "./limits.ts";
import { MalformedResponse } from "./malformed-response.ts";

/** Status line and field lines of a response (RFC 9112 sections 4 and 5). */
export interface ResponseHead {
  /** With `as-go`, 1 also stands for every later version. */
  readonly minorVersion: 0 | 1;
  /** 100 to 999; with `as-go` 0 to 999. */
  readonly status: number;
  /** One character a byte; may be empty. */
  readonly reason: string;
  readonly headers: FieldLines;
}

const STATUS_LINE = "HTTP/1.x 200";
const STATUS_START = 9;
const REASON_START = 13;

/** Throws MalformedResponse, or ProtocolError "too-many-headers". */
export function parseResponseHead(section: string, maxHeaders: number, leniency: Leniency): ResponseHead {
  const lineFeed = section.indexOf("\n");
  const end = section.charCodeAt(lineFeed - 1) === 0x0d ? lineFeed - 1 : lineFeed;
  const start = lineFeed + 1;
  const status = statusOf(section, end);
  if (status === -1) {
    const line = section.slice(0, end);
    const loose = statusLineAsGo(line);
    if (leniency !== "as-go") throw new MalformedResponse("malformed HTTP response", line);
    return {
      ...loose,
      headers: parseFieldLines(unfoldedSection(section, start), start, maxHeaders, leniency),
    };
  }
  const fields = leniency === "none" ? section : unfoldedSection(section, start);
  return {
    minorVersion: section.charCodeAt(7) === 0x30 ? 0 : 1,
    status,
    reason: end > REASON_START ? section.slice(REASON_START, end) : "",
    headers: parseFieldLines(fields, start, maxHeaders, leniency),
  };
}

/** -1 if the status line violates RFC 9112 section 4. */
function statusOf(section: string, end: number): number {
  const version = section.charCodeAt(7);
  const isVersionKnown = section.startsWith("HTTP/1.") && (version === 0x30 || version === 0x31);
  // A server without a reason phrase may end the line right after the code.
  const hasSpaces =
    section.charCodeAt(8) === 0x20 && (end === STATUS_LINE.length || section.charCodeAt(12) === 0x20);
  if (!isVersionKnown || end < STATUS_LINE.length || !hasSpaces) return -1;
  let status = 0;
  for (let at = STATUS_START; at < STATUS_START + 3; at++) {
    const digit = section.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return -1;
    status = status * 10 + digit;
  }
  for (let at = REASON_START; at < end; at++) if (!isFieldCharacter(section.charCodeAt(at))) return -1;
  return status < 100 ? -1 : status;
}

/**
 * Parses like net/http's ReadResponse: any version, blanks before the code, any reason. Throws
 * MalformedResponse.
 */
function statusLineAsGo(line: string): Omit<ResponseHead, "headers"> {
  const [proto = "", rest] = cut(line);
  if (rest === undefined) throw new MalformedResponse("malformed HTTP response", line);
  const [code = "", reason = ""] = cut(rest.replace(/^ +/, ""));
  if (!/^[0-9]{3}$/.test(code)) throw new MalformedResponse("malformed HTTP status code", code);
  if (!/^HTTP\/[0-9]\.[0-9]$/.test(proto)) throw new MalformedResponse("malformed HTTP version", proto);
  return { minorVersion: proto < "HTTP/1.1" ? 0 : 1, status: Number(code), reason };
}

/** Splits at the first space. */
function cut(text: string): readonly string[] {
  const space = text.indexOf(" ");
  return space === -1 ? [text] : [text.slice(0, space), text.slice(space + 1)];
}
