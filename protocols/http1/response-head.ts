import { ProtocolError } from "../protocol-error.ts";
import { type FieldLines, isFieldCharacter, parseFieldLines } from "./field-lines.ts";

/** Status line and field lines of a response (RFC 9112 sections 4 and 5). */
export interface ResponseHead {
  readonly minorVersion: 0 | 1;
  /** 100 to 999. */
  readonly status: number;
  /** One character a byte; may be empty. */
  readonly reason: string;
  readonly headers: FieldLines;
}

const STATUS_LINE = "HTTP/1.x 200";
const STATUS_START = 9;
const REASON_START = 13;

/** Throws ProtocolError "malformed-message" or "too-many-headers". */
export function parseResponseHead(section: string, maxHeaders: number): ResponseHead {
  const lineFeed = section.indexOf("\n");
  const end = section.charCodeAt(lineFeed - 1) === 0x0d ? lineFeed - 1 : lineFeed;
  const version = section.charCodeAt(7);
  const isVersionKnown = section.startsWith("HTTP/1.") && (version === 0x30 || version === 0x31);
  // The space behind the code may be missing where there is no reason, as some servers leave it out.
  const hasSpaces =
    section.charCodeAt(8) === 0x20 && (end === STATUS_LINE.length || section.charCodeAt(12) === 0x20);
  if (!isVersionKnown || end < STATUS_LINE.length || !hasSpaces) {
    throw new ProtocolError("malformed-message", "malformed HTTP response");
  }
  const status = statusOf(section);
  for (let at = REASON_START; at < end; at++) {
    if (!isFieldCharacter(section.charCodeAt(at))) {
      throw new ProtocolError("malformed-message", "a control character in the status line");
    }
  }
  return {
    minorVersion: version === 0x30 ? 0 : 1,
    status,
    reason: end > REASON_START ? section.slice(REASON_START, end) : "",
    headers: parseFieldLines(section, lineFeed + 1, maxHeaders),
  };
}

function statusOf(section: string): number {
  let status = 0;
  for (let at = STATUS_START; at < STATUS_START + 3; at++) {
    const digit = section.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9))
      throw new ProtocolError("malformed-message", "malformed HTTP status code");
    status = status * 10 + digit;
  }
  if (status < 100) throw new ProtocolError("malformed-message", "malformed HTTP status code");
  return status;
}
