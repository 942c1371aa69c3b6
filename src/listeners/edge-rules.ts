import { isIP } from "node:net";
import { bearerTokenOf, subprotocolTokenOf } from "../access/authn/bearer.ts";
import { goQuote } from "../api/go-json.ts";
import { forbidden, type StatusError } from "../api/status.ts";
import { AddressList } from "../config/address-list.ts";
import { canonicalAddress } from "../config/canonical-address.ts";
import type { Edge } from "../config/edge.ts";
import { type HeaderList, hasHeader, headerValue, headerValues, listElements } from "../http/header-list.ts";
import type { IncomingStreaming } from "../sessions/incoming-request.ts";

/** More hops than any request makes. */
const MAX_FORWARDED_HOPS = 32;

/** Whose word is taken about addresses, and which web pages may open sessions. */
export class EdgeRules {
  readonly #proxies: AddressList;
  readonly #origins: ReadonlySet<string>;

  constructor({ trustedProxies, allowedOrigins }: Edge) {
    this.#proxies = new AddressList(trustedProxies);
    this.#origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  }

  isTrustedProxy(address: string): boolean {
    return this.#proxies.has(address);
  }

  /**
   * The addresses that a request came through, the client's first. Read from the end: each trusted hop tells the one before it, and
   * what an untrusted one tells is not looked at.
   */
  sourceAddressesOf(headers: HeaderList, remoteAddress: string): string[] {
    const told = listElements(headerValues(headers, "x-forwarded-for")).slice(-MAX_FORWARDED_HOPS);
    const addresses = [canonicalAddress(remoteAddress)];
    while (this.isTrustedProxy(addresses[0] ?? "")) {
      const before = canonicalAddress(told.pop() ?? "");
      // A client may write anything; what is no address is none.
      if (isIP(before) === 0) break;
      addresses.unshift(before);
    }
    return addresses;
  }

  /**
   * Why a web page may not open this session, if so. A browser adds certificate and cookies to any page's request, so another origin
   * needs a token, which the page must have been given (CSWSH).
   */
  originRefusal({ headers, peer }: IncomingStreaming): StatusError | undefined {
    const origin = headerValue(headers, "origin")?.toLowerCase();
    if (origin === undefined || this.#origins.has(origin)) return undefined;
    const host = headerValue(headers, "host")?.toLowerCase();
    if (host !== undefined && (origin === `https://${host}` || origin === `http://${host}`)) return undefined;
    const hasToken =
      bearerTokenOf({ headers }) !== undefined || subprotocolTokenOf({ headers }) !== undefined;
    const isAmbient = peer !== undefined || hasHeader(headers, "cookie");
    if (hasToken && !isAmbient) return undefined;
    return forbidden("", "", `the origin ${goQuote(origin.slice(0, 100))} is not among edge.allowedOrigins`);
  }
}
