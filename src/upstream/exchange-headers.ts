import type { ResponseHead } from "../../protocols/http1/index.ts";
import type { UpstreamEndpoint } from "./dial.ts";
import { joinHostPort } from "./go-dial-error.ts";
import {
  type HeaderLine,
  type HeaderList,
  hasHeader,
  headerListOf,
  headerValues,
  withHeader,
  withoutHeaders,
} from "./header-list.ts";
import { withoutHopByHop } from "./hop-by-hop.ts";
import type { HttpDownstream } from "./http-downstream.ts";

export interface RequestHeaderOptions {
  readonly upstream: { readonly endpoint: UpstreamEndpoint };
  readonly editHeaders?: ((headers: HeaderList) => HeaderList) | undefined;
  readonly expectsContinue?: boolean | undefined;
}

/** The lines of the request for the upstream, the caller's edit and the framing of this hop included. */
export function requestHeadersOf(request: HttpDownstream, options: RequestHeaderOptions): HeaderLine[] {
  const { editHeaders, expectsContinue, upstream } = options;
  const unwanted: string[] = [];
  if (expectsContinue !== true) unwanted.push("expect");
  // Node refuses to announce trailers that its framing can not carry.
  if (!request.isChunked) unwanted.push("trailer");
  const received = withoutHeaders(withoutHopByHop(request.headers), unwanted);
  const headers = editHeaders?.(received) ?? received;

  const added: HeaderLine[] = [];
  if (!hasHeader(headers, "host")) {
    added.push(["Host", joinHostPort(upstream.endpoint.host, upstream.endpoint.port)]);
  }
  if (request.isChunked) added.push(["Transfer-Encoding", "chunked"]);
  // Node would announce a chunked body for a POST without either.
  else if (!request.hasBody && !hasHeader(headers, "content-length") && !isUsuallyBodiless(request.method)) {
    added.push(["Content-Length", "0"]);
  }
  return [...headers, ...added];
}

/** The lines of the upstream's response for the client; the framing that the client's version allows is added behind it. */
export function responseHeadersOf(
  { status, headers: received }: ResponseHead,
  downstream: HttpDownstream,
): HeaderLine[] {
  const headers = withoutHeaders(withoutHopByHop(headerListOf(received)), ["te"]);
  const canCarryTrailers = downstream.canCarryTrailers(status, headers);
  return withOneLength(canCarryTrailers ? headers : withoutHeaders(headers, ["trailer"]));
}

/** The same length in two lines is read as one, and leaves as one: the next reader may be stricter (RFC 9110 section 8.6). */
function withOneLength(headers: HeaderLine[]): HeaderLine[] {
  const lengths = headerValues(headers, "content-length");
  return lengths.length > 1 ? withHeader(headers, "Content-Length", lengths[0] as string) : headers;
}

function isUsuallyBodiless(method: string): boolean {
  return ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "CONNECT"].includes(method);
}
