import type { IncomingMessage } from "node:http";
import type { UpstreamEndpoint } from "./dial.ts";
import { joinHostPort } from "./go-dial-error.ts";
import { type HeaderLine, type HeaderList, hasHeader, headerListOf, withoutHeaders } from "./header-list.ts";
import { withoutHopByHop } from "./hop-by-hop.ts";

export interface RequestHeaderOptions {
  readonly upstream: { readonly endpoint: UpstreamEndpoint };
  readonly editHeaders?: ((headers: HeaderList) => HeaderList) | undefined;
  readonly expectsContinue?: boolean | undefined;
}

export function hasBody(request: IncomingMessage): boolean {
  const length = request.headers["content-length"];
  return isChunked(request) || (length !== undefined && length !== "0");
}

/** The lines of the request for the upstream, the caller's edit and the framing of this hop included. */
export function requestHeadersOf(request: IncomingMessage, options: RequestHeaderOptions): HeaderLine[] {
  const { editHeaders, expectsContinue, upstream } = options;
  const unwanted: string[] = [];
  if (expectsContinue !== true) unwanted.push("expect");
  // Node refuses to announce trailers that its framing can not carry.
  if (!isChunked(request)) unwanted.push("trailer");
  const received = withoutHeaders(withoutHopByHop(headerListOf(request.rawHeaders)), unwanted);
  const headers = editHeaders?.(received) ?? received;

  const added: HeaderLine[] = [];
  if (!hasHeader(headers, "host")) {
    added.push(["Host", joinHostPort(upstream.endpoint.host, upstream.endpoint.port)]);
  }
  if (isChunked(request)) added.push(["Transfer-Encoding", "chunked"]);
  // Node would announce a chunked body for a POST without either.
  else if (!hasBody(request) && !hasHeader(headers, "content-length") && !isUsuallyBodiless(request.method)) {
    added.push(["Content-Length", "0"]);
  }
  return [...headers, ...added];
}

/** The lines of the upstream's response for the client; Node adds the framing that the client's version allows. */
export function responseHeadersOf(upstreamResponse: IncomingMessage, request: IncomingMessage): HeaderLine[] {
  const headers = withoutHeaders(withoutHopByHop(headerListOf(upstreamResponse.rawHeaders)), ["te"]);
  const status = upstreamResponse.statusCode ?? 0;
  const canCarryTrailers =
    request.httpVersionMinor > 0 &&
    request.method !== "HEAD" &&
    status !== 204 &&
    status !== 304 &&
    !hasHeader(headers, "content-length");
  return canCarryTrailers ? headers : withoutHeaders(headers, ["trailer"]);
}

function isChunked(request: IncomingMessage): boolean {
  return request.headers["transfer-encoding"] !== undefined;
}

function isUsuallyBodiless(method: string | undefined): boolean {
  return ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "CONNECT"].includes(method ?? "GET");
}
