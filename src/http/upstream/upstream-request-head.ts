import { type HeaderList, isHeaderName, isHeaderValue } from "@sluice/client/internal/http/header-list";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";

// Rejects the same targets as Node's client: with controls, spaces, or characters above one byte.
const TARGET = /^[\x21-\xff]+$/;

/**
 * A request's head as Latin-1 text. Throws UpstreamError "invalid-request" for lines that the upstream
 * could read differently: clients and identity providers choose them.
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

/** The trailers after a body's last chunk, and the empty line. Drops invalid lines. */
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
