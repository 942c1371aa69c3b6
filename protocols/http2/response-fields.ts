import type { HeaderEntry } from "./hpack/dynamic-table.ts";
import { ERROR_CODE, Http2Error } from "./http2-error.ts";

/** Names in lower case, in order of arrival; without pseudo-headers. */
export type HeaderFields = readonly HeaderEntry[];

export interface ResponseHead {
  /** Undefined if the server omitted it, which violates the protocol; the caller decides what that means. */
  readonly status: number | undefined;
  readonly fields: HeaderFields;
}

/** A token without capitals (RFC 9110 section 5.6.2, RFC 9113 section 8.2). */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the controls are what is refused
const VALUE = /^[^\x00-\x08\x0a-\x1f\x7f]*$/;

/** The head of a response. Throws Http2Error "stream" in the words of Go's client. */
export function readResponseHead(entries: readonly HeaderEntry[]): ResponseHead {
  let status: string | undefined;
  let at = 0;
  for (; at < entries.length; at++) {
    const [name, value] = entries[at] as HeaderEntry;
    if (!name.startsWith(":")) break;
    if (name !== ":status") throw malformed(`invalid pseudo-header ${JSON.stringify(name)}`);
    if (status !== undefined) throw malformed(`duplicate pseudo-header ":status"`);
    status = value;
  }
  const fields = at === 0 ? entries : entries.slice(at);
  checkFields(fields);
  if (status === undefined || status === "") return { status: undefined, fields };
  if (!/^[0-9]{3}$/.test(status)) {
    throw malformed("malformed response from server: malformed non-numeric status pseudo header");
  }
  return { status: Number(status), fields };
}

/** Throws Http2Error for forbidden names and values, and for pseudo-headers after the head. */
export function checkFields(fields: HeaderFields): void {
  for (const [name, value] of fields) {
    if (name.startsWith(":")) throw malformed("pseudo header field after regular");
    if (!NAME.test(name)) throw malformed("invalid header field name");
    if (!VALUE.test(value)) throw malformed(`invalid header field value for ${JSON.stringify(name)}`);
  }
}

/** The first value with that name. */
export function fieldOf(fields: HeaderFields, wanted: string): string | undefined {
  for (const [name, value] of fields) if (name === wanted) return value;
  return undefined;
}

function malformed(message: string): Http2Error {
  return new Http2Error("stream", ERROR_CODE.PROTOCOL_ERROR, message);
}
