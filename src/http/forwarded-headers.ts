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
  /** The address of the connection that the request came on, as Node gives it. */
  readonly peerAddress: string;
  /** Whether that peer is a proxy of ours: then what it says of the hops before it is kept, otherwise it is dropped. */
  readonly isPeerTrusted: boolean;
}

/** X-Forwarded-For with the peer as its last element, in one line, as Go's ReverseProxy writes it; of a stranger's claims nothing else. */
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
  /** The Host that the client asked for. */
  readonly host: string | undefined;
}

/** What proxies tell of the hop before them, or of the URL that it asked for; `x-forwarded-` begins many more. */
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

/** In either spelling: CGI and what came after it read `X_Real_IP` as `X-Real-IP`. */
function isClaim(name: string): boolean {
  // Most names begin otherwise, and this runs for each line of each request.
  if (!/^[cftx]/i.test(name)) return false;
  const dashed = name.toLowerCase().replaceAll("_", "-");
  return dashed.startsWith("x-forwarded-") || CLAIMS.has(dashed);
}

/** X-Forwarded-For, -Proto and -Host. From a peer that is not trusted nothing that claims an earlier hop survives. */
export function withForwardedOrigin(headers: HeaderList, options: ForwardedOriginOptions): HeaderLine[] {
  const { protocol, host } = options;
  const result = withForwardedFor(headers, options);
  if (!hasHeader(result, "x-forwarded-proto")) result.push(["X-Forwarded-Proto", protocol]);
  if (host !== undefined && !hasHeader(result, "x-forwarded-host")) result.push(["X-Forwarded-Host", host]);
  return result;
}
