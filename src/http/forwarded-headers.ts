import { canonicalAddress } from "@sluice/client/internal/config/address-list";
import { type HeaderEdit, HeaderNames } from "@sluice/client/internal/http/header-edit";
import { type HeaderLine, type HeaderList, listElements } from "@sluice/client/internal/http/header-list";
import { editWithoutHopByHop } from "./hop-by-hop.ts";

interface ForwardedOptions {
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
 * untrusted peer, and a trusted one's that are spelt with underscores.
 */
export function addForwardedFor(edit: HeaderEdit, { isPeerTrusted, peerAddress }: ForwardedOptions): void {
  edit.drop(isPeerTrusted ? MISSPELT_CLAIMS : CLAIMS);
  const peer = canonicalAddress(peerAddress);
  const hops = isPeerTrusted ? listElements([...edit.received("x-forwarded-for"), peer]).join(", ") : peer;
  if (hops === "") edit.drop(FORWARDED_FOR);
  else edit.set("X-Forwarded-For", hops);
}

const FORWARDED_FOR = new HeaderNames(["x-forwarded-for"]);

interface ForwardedOriginOptions extends ForwardedOptions {
  readonly protocol: "http" | "https";
  /** The Host that the client requested. */
  readonly host: string | undefined;
}

/** Headers with which proxies report the previous hop or its URL, besides all `X-Forwarded-*`. */
const OTHER_CLAIMS = new HeaderNames(
  [
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
  ],
  "any-dash",
);

/** Both spellings: CGI and its successors read `X_Real_IP` as `X-Real-IP`. */
const CLAIMS = {
  has(name: string): boolean {
    return FORWARDED_PREFIX.test(name) || OTHER_CLAIMS.has(name);
  },
};

/** A trusted proxy may replace a stranger's `X-Real-IP`, and let `X_Real_IP` through beside it. */
const MISSPELT_CLAIMS = {
  has(name: string): boolean {
    return name.includes("_") && CLAIMS.has(name);
  },
};

const FORWARDED_PREFIX = /^x[-_]forwarded[-_]/i;

/** Sets X-Forwarded-For, -Proto and -Host. Drops an untrusted peer's claims about earlier hops. */
export function addForwardedOrigin(edit: HeaderEdit, options: ForwardedOriginOptions): void {
  const { protocol, host } = options;
  addForwardedFor(edit, options);
  if (!edit.has("x-forwarded-proto")) edit.add("X-Forwarded-Proto", protocol);
  if (host !== undefined && !edit.has("x-forwarded-host")) edit.add("X-Forwarded-Host", host);
}

// RFC 9110 section 6.5.1: headers that frame, route or authenticate a message cannot follow its body.
const NEVER_IN_TRAILERS = new HeaderNames(
  [
    "authorization",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "expect",
    "host",
    "set-cookie",
    "trailer",
  ],
  "any-dash",
);

/** Nor can claims about earlier hops: some servers merge trailers into the headers. */
export function trailersToForward(trailers: HeaderList): HeaderLine[] {
  if (trailers.length === 0) return [];
  const edit = editWithoutHopByHop(trailers);
  edit.drop(NEVER_IN_TRAILERS);
  edit.drop(CLAIMS);
  return edit.lines();
}
