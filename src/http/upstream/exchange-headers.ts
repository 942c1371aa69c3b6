import type { ResponseHead } from "../../../protocols/http1/index.ts";
import type { UpstreamEndpoint } from "../../net/dial.ts";
import { joinHostPort } from "../../net/go-dial-error.ts";
import type { HttpDownstream } from "../downstream/http-downstream.ts";
import {
  type HeaderLine,
  hasHeader,
  headerListOf,
  headerValues,
  withHeader,
  withoutHeaders,
} from "../header-list.ts";
import { withoutHopByHop } from "../hop-by-hop.ts";
import type { ForwardOptions } from "./forward-options.ts";

const EXPECT: ReadonlySet<string> = new Set(["expect"]);
const EXPECT_AND_TRAILER: ReadonlySet<string> = new Set(["expect", "trailer"]);
const TRAILER: ReadonlySet<string> = new Set(["trailer"]);
const TE: ReadonlySet<string> = new Set(["te"]);

/** The request headers for the upstream, with the caller's edit and this hop's framing. */
export function requestHeadersOf(
  request: HttpDownstream,
  endpoint: UpstreamEndpoint,
  options: Pick<ForwardOptions, "editHeaders" | "expectsContinue">,
): HeaderLine[] {
  let headers = withoutHopByHop(request.headers);
  // Announces trailers only if the framing can carry them.
  if (options.expectsContinue === true) {
    if (!request.isChunked) headers = withoutHeaders(headers, TRAILER);
  } else {
    headers = withoutHeaders(headers, request.isChunked ? EXPECT : EXPECT_AND_TRAILER);
  }
  if (options.editHeaders !== undefined) headers = [...options.editHeaders(headers)];
  if (!hasHeader(headers, "host")) headers.push(["Host", joinHostPort(endpoint.host, endpoint.port)]);
  if (request.isChunked) headers.push(["Transfer-Encoding", "chunked"]);
  // Such methods usually have a body, so an empty one needs a length (RFC 9110 section 8.6).
  else if (!request.hasBody && !isUsuallyBodiless(request.method) && !hasHeader(headers, "content-length")) {
    headers.push(["Content-Length", "0"]);
  }
  return headers;
}

const LENGTH = ["content-length"];

/** The response headers for the client. The downstream adds the framing for the client's HTTP version. */
export function responseHeadersOf(
  { status, headers: received }: Pick<ResponseHead, "status" | "headers">,
  downstream: HttpDownstream,
): HeaderLine[] {
  const headers = withoutHeaders(withoutHopByHop(headerListOf(received)), TE);
  const canCarryTrailers = downstream.canCarryTrailers(status, headers);
  const kept = canCarryTrailers ? headers : withoutHeaders(headers, TRAILER);
  // RFC 9110 section 8.6: a 204 has no length, since a reader may wait for the bytes.
  return status === 204 ? withoutHeaders(kept, LENGTH) : withOneLength(kept);
}

/**
 * Merges repeated equal lengths into one line, because the next reader may be stricter (RFC 9110
 * section 8.6).
 */
function withOneLength(headers: HeaderLine[]): HeaderLine[] {
  const lengths = headerValues(headers, "content-length");
  return lengths.length > 1 ? withHeader(headers, "Content-Length", lengths[0] as string) : headers;
}

/** RFC 9110 section 9.2.2: repeating the request has no further effect, and there is no body to lose. */
export function isRepeatable({ method, hasBody }: HttpDownstream): boolean {
  return !hasBody && ["GET", "HEAD", "OPTIONS", "TRACE"].includes(method);
}

function isUsuallyBodiless(method: string): boolean {
  return ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "CONNECT"].includes(method);
}
