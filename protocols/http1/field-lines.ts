import { ProtocolError } from "../protocol-error.ts";

/** Field lines as they were received, name and value in turn, which is the form of Node's `rawHeaders`. */
export type FieldLines = readonly string[];

const NAME = 1;
const VALUE = 2;
/** RFC 9110 section 5.6.2 (token) and 5.5 (field value: no controls but tab; obs-text is kept). */
const CHARACTERS = characterClasses();

function characterClasses(): Uint8Array {
  const classes = new Uint8Array(256);
  for (let code = 0x20; code < 256; code++) if (code !== 0x7f) classes[code] = VALUE;
  classes[0x09] = VALUE;
  for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
    classes[character.charCodeAt(0)] = NAME | VALUE;
  }
  return classes;
}

/**
 * The field lines of a section from `start` on; its last line is the empty one. Line folding (obs-fold) and white space before a
 * colon are refused: two readers that disagree on them see different messages (RFC 9112 section 5).
 * Throws ProtocolError "malformed-message" or "too-many-headers"; no value is ever part of the message.
 */
export function parseFieldLines(section: string, start: number, maxLines: number): string[] {
  const lines: string[] = [];
  let at = start;
  for (;;) {
    const lineFeed = section.indexOf("\n", at);
    const end = section.charCodeAt(lineFeed - 1) === 0x0d ? lineFeed - 1 : lineFeed;
    if (end <= at) return lines;
    if (lines.length >= 2 * maxLines) throw new ProtocolError("too-many-headers", "too many header lines");
    const colon = endOfName(section, at, end);
    const valueStart = firstOfValue(section, colon + 1, end);
    const valueEnd = endOfValue(section, valueStart, end);
    lines.push(section.slice(at, colon), section.slice(valueStart, valueEnd));
    at = lineFeed + 1;
  }
}

function endOfName(section: string, start: number, end: number): number {
  let at = start;
  while (at < end && ((CHARACTERS[section.charCodeAt(at)] ?? 0) & NAME) !== 0) at++;
  if (at === start || at === end || section.charCodeAt(at) !== 0x3a) {
    throw new ProtocolError("malformed-message", "malformed header line");
  }
  return at;
}

function firstOfValue(section: string, start: number, end: number): number {
  let at = start;
  while (at < end && isWhitespace(section.charCodeAt(at))) at++;
  return at;
}

/** Checks what it passes. */
function endOfValue(section: string, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    if (!isFieldCharacter(section.charCodeAt(at))) {
      throw new ProtocolError("malformed-message", "a control character in a header's value");
    }
  }
  let last = end;
  while (last > start && isWhitespace(section.charCodeAt(last - 1))) last--;
  return last;
}

export function isFieldCharacter(code: number): boolean {
  return ((CHARACTERS[code] ?? 0) & VALUE) !== 0;
}

function isWhitespace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
