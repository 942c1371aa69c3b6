import { goQuote } from "@sluice/client/internal/api/go-json";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { ProbeUrl } from "./probe-url.ts";

export interface Redirect {
  readonly url: ProbeUrl;
  /** A location without a scheme keeps the given Host header. */
  readonly isRelative: boolean;
}

const FOLLOWED = new Set([301, 302, 303, 307, 308]);

/** Go follows these statuses, but only with a Location. */
export function isFollowed(status: number, location: string | undefined): location is string {
  return FOLLOWED.has(status) && location !== undefined && location !== "";
}

/** Throws Error in Go's words for an invalid location. */
export function resolveRedirect(location: string, from: ProbeUrl): Redirect {
  const isRelative = !/^[A-Za-z][A-Za-z0-9+.-]*:/.test(location);
  if (!URL.canParse(location, from.text)) {
    throw new Error(
      `failed to parse Location header ${goQuote(location)}: parse ${goQuote(location)}: invalid URL`,
    );
  }
  const { protocol, hostname, port, pathname, search, hash } = new URL(location, from.text);
  const scheme = protocol.slice(0, -1);
  const host = hostname.replace(/^\[|\]$/g, "");
  const refusal =
    scheme === "http" || scheme === "https"
      ? {}
      : { refusal: `unsupported protocol scheme ${goQuote(scheme)}` };
  const number = port === "" ? (scheme === "https" ? 443 : 80) : Number(port);
  const address = port === "" ? (host.includes(":") ? `[${host}]` : host) : joinHostPort(host, number);
  const url = {
    scheme,
    host,
    port: number,
    requestTarget: `${pathname || "/"}${search}`,
    text: `${scheme}://${address}${pathname}${search}${hash}`,
    ...refusal,
  };
  return { url, isRelative };
}

/** Go sends the next server a Referer, except from https to http. */
export function refererOf(from: ProbeUrl, to: ProbeUrl): string | undefined {
  if (from.scheme === "https" && to.scheme === "http") return undefined;
  return from.text.replace(/#.*$/s, "").replace(/\/\/[^/@]*@/, "//");
}
