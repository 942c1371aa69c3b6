import { ProtocolError } from "../protocol-error.ts";

/** Memory bounds for one response. Each is checked before the memory is allocated. */
export interface Http1Limits {
  /**
   * Bytes of the status lines and headers of a response and its interim responses, and again of its
   * trailers. Past it: `header-block-too-large`; the gateway answers 502.
   */
  readonly maxHeadBytes: number;
  /** Lines in one head, and in the trailers. Past it: `too-many-headers`; the gateway answers 502. */
  readonly maxHeaders: number;
  /**
   * Bytes of a chunk's size line with its extensions. Past it: `malformed-message`; the gateway
   * answers 502, or cuts the response.
   */
  readonly maxChunkLineBytes: number;
}

/** Node's client allows 16 KiB and 2,000 lines; some applications' cookies need more bytes. */
export const defaultHttp1Limits: Http1Limits = {
  maxHeadBytes: 64 * 1024,
  maxHeaders: 2000,
  maxChunkLineBytes: 4 * 1024,
};

/**
 * Responses to accept although readers disagree about them. `none`: refuses them. `folded-lines`: joins lines
 * folded by obs-fold (RFC 9112 section 5.2). `as-go`: reads whatever Go's client reads, for verdicts that must
 * match Go's.
 */
export type Leniency = "none" | "folded-lines" | "as-go";

/** Field lines as received: name and value alternate, as in Node's `rawHeaders`. */
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
 * The field lines of a section from `start` on; the section ends with an empty line. Refuses line folding
 * (obs-fold) and white space before a colon, unless `as-go`, because readers disagree about them (RFC 9112 section
 * 5). Throws MalformedResponse, or ProtocolError "too-many-headers".
 */
export function parseFieldLines(
  section: string,
  start: number,
  maxLines: number,
  leniency: Leniency,
): string[] {
  const lines: string[] = [];
  let at = start;
  for (;;) {
    const lineFeed = section.indexOf("\n", at);
    const end = section.charCodeAt(lineFeed - 1) === 0x0d ? lineFeed - 1 : lineFeed;
    if (end <= at) return lines;
    if (lines.length >= 2 * maxLines) throw new ProtocolError("too-many-headers", "too many header lines");
    const colon = endOfName(section, at, end, leniency);
    if (!isFieldText(section, colon + 1, end)) throw malformedLine(section.slice(at, end));
    lines.push(section.slice(at, colon), trimmed(section, colon + 1, end));
    at = lineFeed + 1;
  }
}

function endOfName(section: string, start: number, end: number, leniency: Leniency): number {
  let at = start;
  while (at < end && ((CHARACTERS[section.charCodeAt(at)] ?? 0) & NAME) !== 0) at++;
  // Go keeps spaces in a name, so `Content-Length ` is another name and frames nothing.
  if (leniency === "as-go") while (at < end && isNameAsGo(section.charCodeAt(at))) at++;
  if (at === start || at === end || section.charCodeAt(at) !== 0x3a)
    throw malformedLine(section.slice(start, end));
  return at;
}

/** The part of the section without white space around it. */
function trimmed(section: string, start: number, end: number): string {
  let first = start;
  let last = end;
  while (first < last && isWhitespace(section.charCodeAt(first))) first++;
  while (last > first && isWhitespace(section.charCodeAt(last - 1))) last--;
  return section.slice(first, last);
}

function isNameAsGo(code: number): boolean {
  return code === 0x20 || ((CHARACTERS[code] ?? 0) & NAME) !== 0;
}

export function isFieldCharacter(code: number): boolean {
  return ((CHARACTERS[code] ?? 0) & VALUE) !== 0;
}

/** False if a value or a reason phrase contains a control character. */
export function isFieldText(section: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (!isFieldCharacter(section.charCodeAt(at))) return false;
  return true;
}

function isWhitespace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/**
 * Joins each folded line to the one before with a space, as Go does (RFC 9112 section 5.2). Throws
 * MalformedResponse if the first line is folded.
 */
export function unfoldedSection(section: string, start: number): string {
  if (isWhitespace(section.charCodeAt(start))) {
    const line = lineAt(section, start);
    throw new MalformedResponse("malformed MIME header initial line", line, ": ", true);
  }
  if (!/\n[ \t]/.test(section)) return section;
  // Joining once at the end avoids copying a header of a thousand folds a thousand times.
  const parts = [section.slice(0, start)];
  for (let at = start; at < section.length; ) {
    const line = lineAt(section, at);
    const isFolded = isWhitespace(line.charCodeAt(0));
    if (at > start) parts.push(isFolded ? " " : "\n");
    parts.push(trimmed(line, 0, line.length));
    at = section.indexOf("\n", at) + 1;
  }
  return `${parts.join("")}\n`;
}

/** The line without its line ending. */
function lineAt(section: string, start: number): string {
  const lineFeed = section.indexOf("\n", start);
  return section.slice(
    start,
    section.charCodeAt(lineFeed - 1) === 0x0d && lineFeed > start ? lineFeed - 1 : lineFeed,
  );
}

/** The protocol of a server that does not answer in HTTP/1. */
type ForeignProtocol = "HTTP/2" | "TLS";

/**
 * After the length field of a server's first frame (RFC 9113 section 3.4): SETTINGS, without ACK,
 * on stream 0.
 */
const SETTINGS = "\u0004\0\0\0\0\0";
/** A TLS alert (RFC 8446 section 5.1); after the minor version, the alert's length. */
const TLS_ALERT = ["\u0015\u0003", "\0\u0002"] as const;

/**
 * Recognizes the protocol by the first bytes in place of a status line, one character a byte.
 * Undefined if neither matches, or too few bytes have arrived.
 */
export function foreignProtocolOf(text: string): ForeignProtocol | undefined {
  if (text.startsWith(SETTINGS, 3)) return "HTTP/2";
  const [version, length] = TLS_ALERT;
  return text.startsWith(version) && text.startsWith(length, 3) ? "TLS" : undefined;
}

/**
 * A response that cannot be parsed, described as Go's client would. The message contains nothing
 * from the peer.
 */
export class MalformedResponse extends ProtocolError {
  /** The quoted text is a field line, which may contain a credential. */
  readonly isOfFieldLine: boolean;
  readonly #found: string | readonly string[];
  readonly #separator: string;

  /** `found` is the peer's text, one character a byte; several texts if lines contradict each other. */
  constructor(
    message: string,
    found: string | readonly string[] = [],
    separator = " ",
    isOfFieldLine = false,
  ) {
    super("malformed-message", message);
    this.isOfFieldLine = isOfFieldLine;
    this.#found = found;
    this.#separator = separator;
  }

  /** The protocol that the peer spoke instead. */
  get foreignProtocol(): ForeignProtocol | undefined {
    return typeof this.#found === "string" ? foreignProtocolOf(this.#found) : undefined;
  }

  /** Go's full message, with the peer's text passed through `quote`. */
  quoting(quote: (text: string) => string): string {
    if (typeof this.#found === "string") return `${this.message}${this.#separator}${quote(this.#found)}`;
    if (this.#found.length === 0) return this.message;
    return `${this.message}${this.#separator}[${this.#found.map((text) => quote(text)).join(" ")}]`;
  }
}

/** A line in a head or in trailers that is not a field line. */
export function malformedLine(line: string): MalformedResponse {
  const what = line.includes(":") ? "malformed MIME header line" : "malformed MIME header: missing colon";
  return new MalformedResponse(what, line, ": ", true);
}
