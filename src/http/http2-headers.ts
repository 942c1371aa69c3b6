import type { OutgoingHttpHeaders } from "node:http2";
import { type HeaderLine, type HeaderList, trimWhitespace } from "@sluice/client/internal/http/header-list";

/**
 * HTTP/2 messages have no connection headers (RFC 9113 section 8.2.2). node:http2 refuses them, and
 * HTTP2-Settings.
 */
const CONNECTION_SPECIFIC: ReadonlySet<string> = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/** Headers that node:http2 refuses to send twice (`kSingleValueHeaders`). */
const SINGLE_VALUED: ReadonlySet<string> = new Set([
  "access-control-allow-credentials",
  "access-control-max-age",
  "access-control-request-method",
  "age",
  "authorization",
  "content-encoding",
  "content-language",
  "content-length",
  "content-location",
  "content-md5",
  "content-range",
  "content-type",
  "date",
  "dnt",
  "etag",
  "expires",
  "from",
  "host",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "last-modified",
  "location",
  "max-forwards",
  "proxy-authorization",
  "range",
  "referer",
  "retry-after",
  "tk",
  "upgrade-insecure-requests",
  "user-agent",
  "x-content-type-options",
]);

/**
 * A sent header block: an upgrade refusal's maximum, plus HPACK's overhead. Past it the stream is
 * reset.
 */
export const MAX_SENT_HEADER_BLOCK_BYTES = 2 * 1024 * 1024;

/**
 * Converts headers to node:http2's form: lower case, repeated ones as lists, without connection
 * headers. Keeps only the first line of a header that may occur once, as Go and Node do.
 */
export function http2Headers(lines: HeaderList): OutgoingHttpHeaders {
  // No prototype, since `constructor` and `__proto__` are valid names.
  const headers: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of lines) {
    const key = name.toLowerCase();
    if (CONNECTION_SPECIFIC.has(key) || key.startsWith(":")) continue;
    if (key === "te" && value.toLowerCase() !== "trailers") continue;
    const earlier = headers[key];
    if (earlier === undefined) headers[key] = value;
    else if (Array.isArray(earlier)) earlier.push(value);
    else if (!SINGLE_VALUED.has(key) && key !== "te") headers[key] = [earlier, value];
  }
  return headers;
}

/**
 * The same with a response's status. Drops Content-Length for responses without content (RFC 9110
 * section 8.6), for which clients would reset the stream.
 */
export function http2ResponseHeaders(status: number, lines: HeaderList): OutgoingHttpHeaders {
  const headers = http2Headers(lines);
  if (status < 200 || status === 204 || status === 205) delete headers["content-length"];
  headers[":status"] = status;
  return headers;
}

/**
 * Node.js 22.17, 24.2 and later accept values with outer white space; older versions silently drop
 * them.
 */
export const KEEPS_OUTER_SPACE = { strictFieldWhitespaceValidation: false };

/**
 * Received headers. Trims white space around values, which HTTP/1.1 does not count as part of them,
 * except in impersonation headers, where listeners refuse it: `admin ` and `admin` are different
 * users.
 */
export function receivedLines(rawHeaders: readonly string[]): HeaderLine[] {
  const lines: HeaderLine[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name, value] = [rawHeaders[index] as string, rawHeaders[index + 1] as string];
    lines.push([name, name.startsWith("impersonate-") ? value : trimWhitespace(value)]);
  }
  return lines;
}

/**
 * Converts an HTTP/2 request's headers for an HTTP/1.1 upstream: `:authority` becomes Host, and the
 * crumbs of a cookie are joined.
 */
export function http1Lines(received: HeaderList, authority: string | undefined): HeaderLine[] {
  const lines: HeaderLine[] = authority === undefined ? [] : [["host", authority]];
  const cookies: string[] = [];
  for (const line of received) {
    const [name, value] = line;
    if (name === "cookie") cookies.push(value);
    else if (!name.startsWith(":") && (name !== "host" || authority === undefined)) lines.push(line);
  }
  if (cookies.length > 0) lines.push(["cookie", cookies.join("; ")]);
  return lines;
}
