import { canonicalAddress } from "../config/canonical-address.ts";
import {
  type HeaderLine,
  type HeaderList,
  hasHeader,
  headerValues,
  listElements,
  withHeader,
  withoutHeaders,
} from "./header-list.ts";

export interface ForwardedOptions {
  /** The remote address of the request's connection, as Node reports it. */
  readonly peerAddress: string;
  /**
   * True if that peer is a trusted proxy: then its claims about earlier hops are kept; otherwise they
   * are dropped.
   */
  readonly isPeerTrusted: boolean;
}

/**
 * Appends the peer to X-Forwarded-For, in one line, like Go's ReverseProxy. Drops all claims of an
 * untrusted peer.
 */
export function withForwardedFor(headers: HeaderList, options: ForwardedOptions): HeaderLine[] {
  const { isPeerTrusted, peerAddress } = options;
  const believed = isPeerTrusted ? headers : headers.filter(([name]) => !isClaim(name));
  const earlier = isPeerTrusted ? listElements(headerValues(headers, "x-forwarded-for")) : [];
  const value = [...earlier, canonicalAddress(peerAddress)].filter((hop) => hop !== "").join(", ");
  return value === ""
    ? withoutHeaders(believed, ["x-forwarded-for"])
    : withHeader(believed, "X-Forwarded-For", value);
}

export interface ForwardedOriginOptions extends ForwardedOptions {
  readonly protocol: "http" | "https";
  /** The Host that the client requested. */
  readonly host: string | undefined;
}

/**
 * Headers with which proxies report the previous hop or its URL, besides all that begin with
 * `x-forwarded-`.
 */
const CLAIMS: ReadonlySet<string> = new Set([
  "forwarded",
  "x-real-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-original-for",
  "x-original-host",
  "x-original-proto",
  "x-original-uri",
  "x-original-url",
  "x-rewrite-url",
  "x-envoy-external-address",
]);

/** Matches both spellings: CGI and its successors read `X_Real_IP` as `X-Real-IP`. */
function isClaim(name: string): boolean {
  // Most names begin with other letters, and this runs for each line of each request.
  if (!/^[cftx]/i.test(name)) return false;
  const dashed = name.toLowerCase().replaceAll("_", "-");
  return dashed.startsWith("x-forwarded-") || CLAIMS.has(dashed);
}

/** Sets X-Forwarded-For, -Proto and -Host. Drops an untrusted peer's claims about earlier hops. */
export function withForwardedOrigin(headers: HeaderList, options: ForwardedOriginOptions): HeaderLine[] {
  const { protocol, host } = options;
  const result = withForwardedFor(headers, options);
  if (!hasHeader(result, "x-forwarded-proto")) result.push(["X-Forwarded-Proto", protocol]);
  if (host !== undefined && !hasHeader(result, "x-forwarded-host")) result.push(["X-Forwarded-Host", host]);
  return result;
}
