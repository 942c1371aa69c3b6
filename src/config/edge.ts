import { checkNetwork } from "./address-list.ts";
import type { Section } from "./section.ts";

/** What is believed of those who connect, before anybody is asked who it is. */
export interface Edge {
  /**
   * Origins of web pages that may open sessions with what a browser adds by itself: a client certificate, a cookie, the
   * place it runs at. `*` is not among the choices. The gateway's own origin is always allowed.
   */
  readonly allowedOrigins: readonly string[];
  /** Addresses and networks whose X-Forwarded-For is believed, and which may hold any number of connections. */
  readonly trustedProxies: readonly string[];
}

export const defaultEdge: Edge = { allowedOrigins: [], trustedProxies: [] };

export function readEdge(section: Section): Edge {
  const edge = {
    allowedOrigins: section.strings("allowedOrigins", defaultEdge.allowedOrigins, checkOrigin),
    trustedProxies: section.strings("trustedProxies", defaultEdge.trustedProxies, checkNetwork),
  };
  section.finish();
  return edge;
}

function checkOrigin(value: string): string | undefined {
  const isOrigin = /^[a-z][a-z0-9+.-]*:\/\/[^/*?#@]+$/.test(value) && URL.canParse(value);
  return isOrigin
    ? undefined
    : `must be an origin such as "https://console.example.com", got ${JSON.stringify(value)}`;
}
