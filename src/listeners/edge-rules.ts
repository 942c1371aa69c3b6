import { isIP, isIPv6, type Socket } from "node:net";
import { goQuote } from "@sluice/client/internal/api/go-json";
import type { StatusError } from "@sluice/client/internal/api/status";
import { AddressList, canonicalAddress, ipv6Groups } from "@sluice/client/internal/config/address-list";
import {
  type HeaderList,
  hasHeader,
  headerValue,
  headerValues,
  listElements,
} from "@sluice/client/internal/http/header-list";
import { bearerTokenOf, subprotocolTokenOf } from "../access/authn/bearer-tokens.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { Limits } from "../config/sections/limits.ts";
import type { GatewayContext } from "../sessions/context.ts";
import type { IncomingStreaming } from "../sessions/incoming-request.ts";

/** The parts that every listener needs. */
export interface ListenerContext
  extends Pick<GatewayContext, "audit" | "clock" | "limits" | "logger" | "metrics" | "timeouts" | "tracing"> {
  readonly edge: EdgeRules;
}

/** A gateway's context with its listeners' parts. */
export type ServingContext = GatewayContext & ListenerContext;

/**
 * Hops of X-Forwarded-For that are read, starting from its end; real requests have fewer. Past it
 * earlier hops are not trusted.
 */
const MAX_FORWARDED_HOPS = 32;

/** The connection that carried a request. */
export interface ConnectionOrigin {
  readonly isTls: boolean;
  readonly remoteAddress: string;
}

/** Decides which peers are trusted to report addresses, and which web pages may open sessions. */
export class EdgeRules {
  readonly #proxies: AddressList;
  readonly #origins: ReadonlySet<string>;

  constructor({ trustedProxies, allowedOrigins }: GatewayConfiguration["edge"]) {
    this.#proxies = new AddressList(trustedProxies);
    this.#origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  }

  isTrustedProxy(address: string): boolean {
    return this.#proxies.has(address);
  }

  /**
   * The request's addresses, the client's first. Reads from the end: each trusted hop names the hop
   * before it, and an untrusted hop's claims are ignored.
   */
  sourceAddressesOf(headers: HeaderList, remoteAddress: string): string[] {
    const told = listElements(headerValues(headers, "x-forwarded-for")).slice(-MAX_FORWARDED_HOPS);
    const addresses = [canonicalAddress(remoteAddress)];
    while (this.isTrustedProxy(addresses[0] ?? "")) {
      const before = canonicalAddress(told.pop() ?? "");
      // The client may have written anything, so reading stops at text that is not an address.
      if (isIP(before) === 0) break;
      addresses.unshift(before);
    }
    return addresses;
  }

  /**
   * True if the client used TLS, either here or to a trusted proxy that says so. The value of the
   * outermost trusted proxy in X-Forwarded-Proto counts.
   */
  isHttps(headers: HeaderList, { isTls, remoteAddress }: ConnectionOrigin): boolean {
    if (!this.isTrustedProxy(canonicalAddress(remoteAddress))) return isTls;
    const protocols = listElements(headerValues(headers, "x-forwarded-proto"));
    if (protocols.length === 0) return isTls;
    const proxies = this.sourceAddressesOf(headers, remoteAddress).filter((hop) => this.isTrustedProxy(hop));
    const protocol = protocols[Math.max(0, protocols.length - proxies.length)];
    return /^(?:https|wss)$/i.test(protocol ?? "");
  }

  /**
   * Why a web page may not open this session (CSWSH); undefined if it may.
   * docs/decisions/0040-origins.md.
   */
  originRefusal({ headers, peer }: IncomingStreaming, connection: ConnectionOrigin): StatusError | undefined {
    const origin = headerValue(headers, "origin")?.toLowerCase();
    if (origin === undefined || this.#origins.has(origin)) return undefined;
    const host = headerValue(headers, "host")?.toLowerCase();
    // Anyone on the network path can replace a page that was loaded without TLS.
    const isPlain = !this.isHttps(headers, connection);
    if (host !== undefined && origin === `https://${host}`) return undefined;
    if (host !== undefined && isPlain && origin === `http://${host}`) return undefined;
    if (isBeyondForeignPages(origin, headers, peer !== undefined)) return undefined;
    return WIRE_ERRORS["origin-refused"].streaming({ origin: goQuote(origin.slice(0, 100)) });
  }
}

/** golang.org/x/net/websocket, which Kubernetes' conformance tests use, sends this constant Origin. */
const ORIGIN_OF_PROGRAMS = "http://localhost";

/**
 * True for credentials that a browser never adds to a page's request. Browsers do add cookies and
 * certificates, and let pages choose subprotocols.
 */
function isBeyondForeignPages(origin: string, headers: HeaderList, hasCertificate: boolean): boolean {
  if (hasHeader(headers, "cookie")) return false;
  if (bearerTokenOf({ headers }) !== undefined) return true;
  if (!hasCertificate) return subprotocolTokenOf({ headers }) !== undefined;
  const isBrowser = /^mozilla\//i.test(headerValue(headers, "user-agent") ?? "");
  return origin === ORIGIN_OF_PROGRAMS && !isBrowser;
}

/**
 * Closes connections of an address that has too many and returns false for them; a trusted proxy has
 * no limit. IPv6 addresses are counted by their /64, the network of one host.
 */
export function connectionCap(
  { limits, edge }: { readonly limits: Pick<Limits, "maxConnectionsPerAddress">; readonly edge: EdgeRules },
  onRefused: () => void,
): (socket: Socket) => boolean {
  const counts = new Map<string, number>();
  return (socket) => {
    const address = canonicalAddress(socket.remoteAddress ?? "");
    if (edge.isTrustedProxy(address)) return true;
    const key = networkOf(address);
    const count = (counts.get(key) ?? 0) + 1;
    if (count > limits.maxConnectionsPerAddress) {
      onRefused();
      socket.destroy();
      return false;
    }
    counts.set(key, count);
    socket.once("close", () => {
      const left = (counts.get(key) ?? 1) - 1;
      if (left === 0) counts.delete(key);
      else counts.set(key, left);
    });
    return true;
  };
}

/** The first four groups of an IPv6 address, or an IPv4 address in its usual form, whatever its spelling. */
export function networkOf(address: string): string {
  const plain = canonicalAddress(address);
  // Node's own check is a long pattern, and most addresses are IPv4.
  if (!plain.includes(":") || !isIPv6(plain)) return plain;
  const groups = ipv6Groups(plain).slice(0, 4);
  return groups.map((group) => group.toString(16)).join(":");
}
