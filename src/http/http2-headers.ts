import type { OutgoingHttpHeaders } from "node:http2";
import { type HeaderLine, type HeaderLines, trimWhitespace } from "@sluice/client/internal/http/header-list";

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
 * Inherits nothing, since `constructor` and `__proto__` are valid names. Objects below it are of
 * V8's fast kind until a name is deleted, and cost half of `Object.create(null)`.
 */
const NO_NAMES: object = Object.freeze(Object.create(null));

/**
 * Converts headers to node:http2's form: lower case, repeated ones as lists, without connection
 * headers. Keeps only the first line of a header that may occur once, as Go and Node do.
 */
export function http2Headers(
  lines: HeaderLines,
  hostKey: "host" | ":authority" = "host",
): OutgoingHttpHeaders {
  const headers: Record<string, string | string[]> = Object.create(NO_NAMES);
  const add = (name: string, value: string): void => {
    const lower = name.toLowerCase();
    if (CONNECTION_SPECIFIC.has(lower) || lower.startsWith(":")) return;
    if (lower === "te" && value.toLowerCase() !== "trailers") return;
    const key = lower === "host" ? hostKey : lower;
    const earlier = headers[key];
    if (earlier === undefined) headers[key] = value;
    else if (Array.isArray(earlier)) earlier.push(value);
    else if (!SINGLE_VALUED.has(lower) && lower !== "te") headers[key] = [earlier, value];
  };
  if ("forEachLine" in lines) lines.forEachLine(add);
  else for (const [name, value] of lines) add(name, value);
  return headers;
}

/**
 * The same with a response's status. Drops Content-Length for responses without content (RFC 9110
 * section 8.6), for which clients would reset the stream.
 */
export function http2ResponseHeaders(status: number, lines: HeaderLines): OutgoingHttpHeaders {
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
 * Received headers, flat, without white space around values, as HTTP/1.1 reads them. Impersonation
 * headers keep it, since listeners refuse it: `admin ` and `admin` are different users.
 */
export function receivedFields(rawHeaders: readonly string[]): readonly string[] {
  let fields: string[] | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const value = receivedValue(rawHeaders, index);
    if (value === rawHeaders[index + 1]) continue;
    fields ??= [...rawHeaders];
    fields[index + 1] = value;
  }
  return fields ?? rawHeaders;
}

function receivedValue(rawHeaders: readonly string[], nameIndex: number): string {
  const value = rawHeaders[nameIndex + 1] as string;
  return rawHeaders[nameIndex]?.startsWith("impersonate-") === true ? value : trimWhitespace(value);
}

/**
 * An HTTP/2 request's received headers as of an HTTP/1.1 request: `:authority` becomes Host, and
 * the crumbs of a cookie are joined.
 */
export function http1Lines(rawHeaders: readonly string[], authority: string | undefined): HeaderLine[] {
  const lines: HeaderLine[] = authority === undefined ? [] : [["host", authority]];
  let cookie: string | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.startsWith(":") || (name === "host" && authority !== undefined)) continue;
    const value = receivedValue(rawHeaders, index);
    if (name !== "cookie") lines.push([name, value]);
    else cookie = cookie === undefined ? value : `${cookie}; ${value}`;
  }
  if (cookie !== undefined) lines.push(["cookie", cookie]);
  return lines;
}
