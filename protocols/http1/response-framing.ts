import type { FieldLines } from "./field-lines.ts";
import type { Leniency } from "./limits.ts";
import { MalformedResponse } from "./malformed-response.ts";
import type { ResponseHead } from "./response-head.ts";

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
  const isClosing = closes(connection, minorVersion) || (coding !== undefined && minorVersion === 0);
  const isInterim = status >= 100 && status < 200;
  const hasBody = method !== "HEAD" && !isInterim && status !== 204 && status !== 304;
  if (!hasBody) return { framing: 0, keepsAlive: !isClosing };
  const framing = coding !== undefined ? "chunked" : (bytes ?? "until-close");
  return { framing, keepsAlive: !isClosing && framing !== "until-close" };
}

/** `close` wins over everything, `keep-alive` over HTTP/1.0's default. */
function closes(connection: string, minorVersion: 0 | 1): boolean {
  if (connection === "") return minorVersion === 0;
  const options = connection.toLowerCase().split(",");
  const has = (wanted: string): boolean => options.some((option) => option.trim() === wanted);
  return has("close") || (minorVersion === 0 && !has("keep-alive"));
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
