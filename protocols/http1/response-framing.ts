import { ProtocolError } from "../protocol-error.ts";
import type { ResponseHead } from "./response-head.ts";

/** Where a response's body ends (RFC 9112 section 6.3): a length in bytes, after the last chunk, or with the connection. */
export type ResponseFraming = number | "chunked" | "until-close";

export interface ResponseDelivery {
  readonly framing: ResponseFraming;
  /** Whether the connection can carry another exchange behind this one (RFC 9112 section 9.3). */
  readonly keepsAlive: boolean;
}

// Beyond 2^53 lengths are not exact.
const MAX_LENGTH_DIGITS = 15;

/**
 * Throws ProtocolError "malformed-message" for ambiguous framing: different lengths, a length beside a
 * coding, a coding other than `chunked`. Equal lengths count once, as in Go.
 */
export function deliveryOf(method: string, head: ResponseHead): ResponseDelivery {
  const { headers, minorVersion, status } = head;
  let length: string | undefined;
  let coding: string | undefined;
  let connection = "";
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string;
    const value = headers[at + 1] as string;
    if (name.length === 14 && name.toLowerCase() === "content-length") {
      if (length !== undefined && length !== value) throw malformed("different Content-Length headers");
      length = value;
    } else if (name.length === 17 && name.toLowerCase() === "transfer-encoding") {
      coding = coding === undefined ? value : `${coding}, ${value}`;
    } else if (name.length === 10 && name.toLowerCase() === "connection") {
      connection += `,${value}`;
    }
  }
  const bytes = length === undefined ? undefined : lengthOf(length);
  if (coding !== undefined) {
    if (bytes !== undefined) throw malformed("both Content-Length and Transfer-Encoding");
    if (coding.toLowerCase() !== "chunked") throw malformed("unsupported transfer encoding");
  }
  // RFC 9112 section 6.1: a peer that sends chunks as HTTP/1.0 is not trusted with a second message.
  const isClosing = closes(connection, minorVersion) || (coding !== undefined && minorVersion === 0);
  const hasBody = method !== "HEAD" && status >= 200 && status !== 204 && status !== 304;
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
  if (text.length === 0 || text.length > MAX_LENGTH_DIGITS) throw malformed("bad Content-Length");
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) throw malformed("bad Content-Length");
    length = length * 10 + digit;
  }
  return length;
}

function malformed(text: string): ProtocolError {
  return new ProtocolError("malformed-message", text);
}
