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

/** X-Forwarded-For with the peer as its last element, in one line, as Go's ReverseProxy writes it. */
export function withForwardedFor(headers: HeaderList, options: ForwardedOptions): HeaderLine[] {
  const earlier = options.isPeerTrusted ? listElements(headerValues(headers, "x-forwarded-for")) : [];
  const value = [...earlier, canonicalAddress(options.peerAddress)].filter((hop) => hop !== "").join(", ");
  return value === ""
    ? withoutHeaders(headers, ["x-forwarded-for"])
    : withHeader(headers, "X-Forwarded-For", value);
}

export interface ForwardedOriginOptions extends ForwardedOptions {
  readonly protocol: "http" | "https";
  /** The Host that the client asked for. */
  readonly host: string | undefined;
}

const CLAIMS: ReadonlySet<string> = new Set([
  "forwarded",
  "x-real-ip",
  "x-forwarded-proto",
  "x-forwarded-host",
  "x-forwarded-port",
]);

/**
 * X-Forwarded-For, -Proto and -Host. From a peer that is not trusted nothing that claims an earlier hop survives,
 * `Forwarded` and `X-Real-Ip` included.
 */
export function withForwardedOrigin(headers: HeaderList, options: ForwardedOriginOptions): HeaderLine[] {
  const { isPeerTrusted, protocol, host } = options;
  const result = withForwardedFor(isPeerTrusted ? headers : withoutHeaders(headers, CLAIMS), options);
  if (!hasHeader(result, "x-forwarded-proto")) result.push(["X-Forwarded-Proto", protocol]);
  if (host !== undefined && !hasHeader(result, "x-forwarded-host")) result.push(["X-Forwarded-Host", host]);
  return result;
}
