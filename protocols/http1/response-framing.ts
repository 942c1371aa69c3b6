import {
  type FieldLines,
  isFieldText,
  type Leniency,
  MalformedResponse,
  parseFieldLines,
  unfoldedSection,
} from "./field-lines.ts";

/**
 * How a response's body ends (RFC 9112 section 6.3): after a number of bytes, after the last chunk,
 * or with the connection.
 */
export type ResponseFraming = number | "chunked" | "until-close";

export interface ResponseDelivery {
  readonly framing: ResponseFraming;
  /** The connection can serve another exchange after this one (RFC 9112 section 9.3). */
  readonly keepsAlive: boolean;
}

/** Options of Connection: `close` wins over everything, `keep-alive` over HTTP/1.0's default. */
const CLOSE = /(?:^|,)\s*close\s*(?:,|$)/i;
const KEEP_ALIVE = /(?:^|,)\s*keep-alive\s*(?:,|$)/i;

// Beyond 2^53 lengths are not exact.
const MAX_LENGTH_DIGITS = 15;

/**
 * Throws MalformedResponse for different lengths, a length beside a coding, or a coding other than `chunked` (RFC
 * 9112 section 6.3). Equal lengths count once, as in Go. With `as-go`, chunks win over a length, and HTTP/1.0 has
 * no codings.
 */
export function deliveryOf(method: string, head: ResponseHead, leniency: Leniency): ResponseDelivery {
  const { headers, minorVersion, status } = head;
  // RFC 9110 section 9.3.6: the tunnel's bytes follow, whatever the header lines say.
  if (method === "CONNECT" && status >= 200 && status <= 299) return { framing: 0, keepsAlive: true };
  let length: string | undefined;
  let coding: string | undefined;
  let connection = "";
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string;
    const value = headers[at + 1] as string;
    if (name.length === 14 && name.toLowerCase() === "content-length") {
      if (length !== undefined && length !== value) throw differentLengths(headers);
      length = value;
    } else if (name.length === 17 && name.toLowerCase() === "transfer-encoding") {
      coding = coding === undefined ? value : `${coding}, ${value}`;
    } else if (name.length === 10 && name.toLowerCase() === "connection") {
      connection += `,${value}`;
    }
  }
  if (leniency === "as-go" && minorVersion === 0) coding = undefined;
  if (coding !== undefined && coding.toLowerCase() !== "chunked") {
    throw new MalformedResponse("unsupported transfer encoding", coding, ": ");
  }
  const bytes = length === undefined ? undefined : lengthOf(length);
  if (coding !== undefined && bytes !== undefined && leniency !== "as-go") {
    throw new MalformedResponse("both Content-Length and Transfer-Encoding");
  }
  // RFC 9112 section 6.1: a peer that sends chunks as HTTP/1.0 gets no second request.
  const mayStay = minorVersion === 1 || (KEEP_ALIVE.test(connection) && coding === undefined);
  const isClosing = !mayStay || CLOSE.test(connection);
  const isInterim = status >= 100 && status < 200;
  const hasBody = method !== "HEAD" && !isInterim && status !== 204 && status !== 304;
  if (!hasBody) return { framing: 0, keepsAlive: !isClosing };
  const framing = coding !== undefined ? "chunked" : (bytes ?? "until-close");
  return { framing, keepsAlive: !isClosing && framing !== "until-close" };
}

function lengthOf(text: string): number {
  if (text.length === 0) throw new MalformedResponse("invalid empty Content-Length", text);
  if (text.length > MAX_LENGTH_DIGITS) throw new MalformedResponse("bad Content-Length", text);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) throw new MalformedResponse("bad Content-Length", text);
    length = length * 10 + digit;
  }
  return length;
}

function differentLengths(headers: FieldLines): MalformedResponse {
  const found = headers.filter(
    (_, at) => at % 2 === 1 && headers[at - 1]?.toLowerCase() === "content-length",
  );
  return new MalformedResponse(
    "http: message cannot contain multiple Content-Length headers",
    found,
    "; got ",
  );
}

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
  return status < 100 || !isFieldText(section, REASON_START, end) ? -1 : status;
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
