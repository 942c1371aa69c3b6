import { canonicalAddress } from "../config/canonical-address.ts";
import type { HeaderEdit } from "./header-edit.ts";
import { listElements } from "./header-list.ts";

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
export function addForwardedFor(edit: HeaderEdit, { isPeerTrusted, peerAddress }: ForwardedOptions): void {
  if (!isPeerTrusted) edit.dropIf(isClaim);
  const hops = listElements(edit.received("x-forwarded-for"));
  const peer = canonicalAddress(peerAddress);
  if (peer !== "") hops.push(peer);
  if (hops.length === 0) edit.drop(FORWARDED_FOR);
  else edit.set("X-Forwarded-For", hops.join(", "));
}

const FORWARDED_FOR: ReadonlySet<string> = new Set(["x-forwarded-for"]);

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
function isClaim(lowerName: string): boolean {
  // Most names begin with other letters, and this runs for each line of each request.
  const first = lowerName.charCodeAt(0);
  if (first !== LETTER_X && first !== LETTER_F && first !== LETTER_C && first !== LETTER_T) return false;
  const dashed = lowerName.replaceAll("_", "-");
  return dashed.startsWith("x-forwarded-") || CLAIMS.has(dashed);
}

const [LETTER_C, LETTER_F, LETTER_T, LETTER_X] = [0x63, 0x66, 0x74, 0x78];

/** Sets X-Forwarded-For, -Proto and -Host. Drops an untrusted peer's claims about earlier hops. */
export function addForwardedOrigin(edit: HeaderEdit, options: ForwardedOriginOptions): void {
  const { protocol, host } = options;
  addForwardedFor(edit, options);
  if (!edit.has("x-forwarded-proto")) edit.add("X-Forwarded-Proto", protocol);
  if (host !== undefined && !edit.has("x-forwarded-host")) edit.add("X-Forwarded-Host", host);
}
