import { UpstreamError } from "../../net/upstream-error.ts";
import { type HeaderList, isHeaderName, isHeaderValue } from "../header-list.ts";

// What Node's client refuses too: controls, spaces, and what does not fit one byte.
const TARGET = /^[\x21-\xff]+$/;

/**
 * A request's head, one character a byte. Throws UpstreamError "invalid-request" for lines that the upstream would read as others:
 * clients and identity providers choose them.
 */
export function requestHeadText(method: string, target: string, headers: HeaderList): string {
  if (!isHeaderName(method) || !TARGET.test(target)) throw invalidRequest();
  let text = `${method} ${target} HTTP/1.1\r\n`;
  for (const [name, value] of headers) {
    if (!isHeaderName(name) || !isHeaderValue(value)) throw invalidRequest();
    text += `${name}: ${value}\r\n`;
  }
  return `${text}Connection: keep-alive\r\n\r\n`;
}

/** The lines behind the last chunk of a body, and the empty one; the same check. */
export function trailerText(trailers: HeaderList): string {
  let text = "";
  for (const [name, value] of trailers) {
    if (isHeaderName(name) && isHeaderValue(value)) text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
}

function invalidRequest(): UpstreamError {
  return new UpstreamError("invalid-request", "the request cannot be forwarded");
}
