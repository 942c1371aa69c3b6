import {
  type HeaderLine,
  type HeaderList,
  hasHeader,
  headerTokens,
  headerValues,
  withoutHeaders,
} from "./header-list.ts";

/**
 * Headers about one connection (RFC 9110 section 7.6.1), with the historical Proxy-Connection and
 * Keep-Alive.
 */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

// If Connection named one of these, the next reader would lose the message's target or its end.
const NEVER_NOMINATED = ["host", "content-length"];

/**
 * Removes hop-by-hop headers and all that `Connection` names. Call it before adding headers: otherwise
 * a caller could name X-Forwarded-For or an identity header and have ours removed (CVE-2021-31999,
 * CVE-2022-23652). `Trailer` stays, since trailers are forwarded; `TE` becomes `TE: trailers` if the
 * sender accepts them.
 */
export function withoutHopByHop(headers: HeaderList): HeaderLine[] {
  const kept = withoutHeaders(headers, unwantedOf(headers));
  const acceptsTrailers =
    hasHeader(headers, "te") &&
    headerTokens(headers, "te").some((coding) => coding.split(";")[0]?.trim() === "trailers");
  if (acceptsTrailers) kept.push(["TE", "trailers"]);
  return kept;
}

/** The usual values, which name no other header. */
const USUAL_OPTIONS: ReadonlySet<string> = new Set(["keep-alive", "Keep-Alive"]);

function unwantedOf(headers: HeaderList): ReadonlySet<string> {
  if (headerValues(headers, "connection").every((value) => USUAL_OPTIONS.has(value))) return HOP_BY_HOP;
  const nominated = headerTokens(headers, "connection").filter(
    (name) => !HOP_BY_HOP.has(name) && !NEVER_NOMINATED.includes(name),
  );
  return nominated.length === 0 ? HOP_BY_HOP : new Set([...HOP_BY_HOP, ...nominated]);
}

/** The same for a request that switches protocols: `Connection` is rebuilt and names only `Upgrade`. */
export function upgradeHeaders(headers: HeaderList, protocol: string): HeaderLine[] {
  return [
    ...withoutHeaders(withoutHopByHop(headers), ["te"]),
    ["Connection", "Upgrade"],
    ["Upgrade", protocol],
  ];
}

// RFC 9110 section 6.5.1: headers that frame, route or authenticate a message cannot follow its body.
const NEVER_IN_TRAILERS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "authorization",
  "content-encoding",
  "content-length",
  "content-range",
  "content-type",
  "cookie",
  "host",
  "set-cookie",
  "trailer",
]);

export function trailersToForward(trailers: HeaderList): HeaderLine[] {
  return withoutHeaders(trailers, NEVER_IN_TRAILERS);
}
