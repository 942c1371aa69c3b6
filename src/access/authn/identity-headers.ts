import {
  type HeaderLine,
  type HeaderList,
  listElements,
  withoutHeaders,
} from "@sluice/client/internal/http/header-list";
import { withoutBearerSubprotocols } from "@sluice/protocols/websocket";
import type { Authenticator } from "./authenticator.ts";

/** kube-apiserver's usual `--requestheader-*` settings. */
const FRONT_PROXY = {
  names: ["x-remote-user", "x-remote-group", "x-remote-uid"],
  prefixes: ["x-remote-extra-"],
};
const IDENTITY_HEADERS = ["authorization", "cookie", ...FRONT_PROXY.names];
const IDENTITY_PREFIXES = ["impersonate-", ...FRONT_PROXY.prefixes];

/**
 * Removes the lines that identify, or claim to identify, the user. Also removes a token among the
 * WebSocket subprotocols, which browsers use because they cannot set headers.
 */
export function withoutIdentity(headers: HeaderList): HeaderLine[] {
  return withoutHeaders(headers, IDENTITY_HEADERS)
    .filter(([name]) => !IDENTITY_PREFIXES.some((prefix) => name.toLowerCase().startsWith(prefix)))
    .flatMap(([name, value]): HeaderLine[] => {
      if (name.toLowerCase() !== "sec-websocket-protocol") return [[name, value]];
      const protocols = withoutBearerSubprotocols(listElements([value]));
      return protocols.length === 0 ? [] : [[name, protocols.join(", ")]];
    });
}

/**
 * Tests for a front proxy's identity headers, by the usual names and by the names that this gateway
 * is configured to use.
 */
export function frontProxyNames({
  identityHeaders = { names: [], prefixes: [] },
}: Pick<Authenticator, "identityHeaders">): (name: string) => boolean {
  const names = new Set([...FRONT_PROXY.names, ...identityHeaders.names.map((name) => name.toLowerCase())]);
  const prefixes = [
    ...FRONT_PROXY.prefixes,
    ...identityHeaders.prefixes.map((prefix) => prefix.toLowerCase()),
  ];
  return (name) => {
    const lower = name.toLowerCase();
    return names.has(lower) || prefixes.some((prefix) => lower.startsWith(prefix));
  };
}

export function withoutFrontProxy(
  headers: HeaderList,
  authenticator: Pick<Authenticator, "identityHeaders">,
): HeaderList {
  const isDropped = frontProxyNames(authenticator);
  return headers.filter(([name]) => !isDropped(name));
}
