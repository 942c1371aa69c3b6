import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { type HeaderEdit, HeaderNames } from "@sluice/client/internal/http/header-edit";
import { isHeaderName, isHeaderValue } from "@sluice/client/internal/http/header-list";
import type { UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { FieldLines } from "@sluice/protocols/http1";
import { editWithoutHopByHop, requestEdit } from "../hop-by-hop.ts";
import type { ForwardOptions } from "./forward-options.ts";

export const EXPECT = new HeaderNames(["expect"]);
const TRAILER = new HeaderNames(["trailer"]);
const LENGTH = new HeaderNames(["content-length"]);

const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
const USUALLY_BODILESS: ReadonlySet<string> = new Set([...SAFE, "DELETE", "CONNECT"]);

// Rejects the same targets as Node's client: with controls, spaces, or characters above one byte.
const TARGET = /^[\x21-\xff]+$/;

/**
 * The request's head as Latin-1 text, with the caller's edit and this hop's framing. Throws
 * UpstreamError "invalid-request" for lines that the upstream could read differently.
 */
export function requestHeadOf(
  request: HttpDownstream,
  endpoint: UpstreamEndpoint,
  options: Pick<ForwardOptions, "editHeaders" | "expectsContinue" | "path">,
): string {
  const received = requestEdit(request.headers);
  if (options.expectsContinue !== true) received.drop(EXPECT);
  // Announces trailers only if the framing can carry them.
  if (!request.isChunked) received.drop(TRAILER);
  const edit = options.editHeaders?.(received) ?? received;
  if (!edit.has("host")) edit.add("Host", joinHostPort(endpoint.host, endpoint.port));
  if (request.isChunked) edit.add("Transfer-Encoding", "chunked");
  // Other methods usually have a body, so an empty one needs a length (RFC 9110 section 8.6).
  else if (!request.hasBody && !USUALLY_BODILESS.has(request.method) && !edit.has("content-length")) {
    edit.add("Content-Length", "0");
  }
  const { method } = request;
  const target = options.path ?? request.target;
  if (!isHeaderName(method) || !TARGET.test(target)) throw invalidRequest();
  let text = `${method} ${target} HTTP/1.1\r\n`;
  edit.forEachLine((name, value) => {
    if (!isHeaderName(name) || !isHeaderValue(value)) throw invalidRequest();
    text += `${name}: ${value}\r\n`;
  });
  return `${text}Connection: keep-alive\r\n\r\n`;
}

/**
 * An edit that makes a response's headers those for the client, with the caller's edit. The
 * downstream applies it and adds the framing for the client's HTTP version.
 */
export function responseHeadersOf(
  status: number,
  headers: FieldLines,
  downstream: HttpDownstream,
  options: Pick<ForwardOptions, "editResponseHeaders" | "expectsContinue">,
): HeaderEdit {
  const edit = editWithoutHopByHop(headers);
  const lengths = edit.received("content-length");
  if (!downstream.canCarryTrailers(status, lengths.length > 0)) edit.drop(TRAILER);
  // RFC 9110 section 8.6: a 204 has no length, since a reader may wait for the bytes.
  if (status === 204) edit.drop(LENGTH);
  // Repeated equal lengths become one, because the next reader may be stricter (section 8.6).
  else if (lengths.length > 1) edit.set("Content-Length", lengths[0] as string);
  options.editResponseHeaders?.(edit, status);
  // The client may still wait for a 100 before it sends the body, so its connection cannot be reused.
  if (options.expectsContinue === true && downstream.hasBody && !downstream.isBodyComplete)
    edit.add("Connection", "close");
  return edit;
}

/** RFC 9110 section 9.2.2: repeating the request has no further effect, and there is no body to lose. */
export function isRepeatable({ method, hasBody }: HttpDownstream): boolean {
  return !hasBody && SAFE.has(method);
}

function invalidRequest(): UpstreamError {
  return new UpstreamError("invalid-request", "the request cannot be forwarded");
}
