import { HeaderNames } from "@sluice/client/internal/http/header-edit";
import {
  type HeaderLine,
  type HeaderList,
  isNamed,
  listElements,
} from "@sluice/client/internal/http/header-list";
import { withoutBearerSubprotocols } from "@sluice/protocols/websocket";
import type { Authenticator } from "./authenticator.ts";

/** kube-apiserver's usual `--requestheader-*` settings. */
const FRONT_PROXY = {
  names: ["x-remote-user", "x-remote-group", "x-remote-uid"],
  prefixes: ["x-remote-extra-"],
};
const IDENTITY_NAMES = new HeaderNames(["authorization", "cookie", ...FRONT_PROXY.names], "any-dash");
const IDENTITY_PREFIX = /^(?:impersonate[-_]|x[-_]remote[-_]extra[-_])/i;

/**
 * Removes the lines that identify, or claim to identify, the user, also with `_` for `-` as CGI
 * reads them, and a token among the WebSocket subprotocols, with which browsers send one.
 */
export function withoutIdentity(headers: HeaderList): HeaderLine[] {
  const kept: HeaderLine[] = [];
  for (const line of headers) {
    const [name, value] = line;
    if (IDENTITY_NAMES.has(name) || IDENTITY_PREFIX.test(name)) continue;
    if (!isNamed(name, "sec-websocket-protocol")) {
      kept.push(line);
      continue;
    }
    const protocols = withoutBearerSubprotocols(listElements([value]));
    if (protocols.length > 0) kept.push([name, protocols.join(", ")]);
  }
  return kept;
}

/**
 * Tests for a front proxy's identity headers, by the usual names and by the names that this gateway
 * is configured to use, also with `_` for `-`.
 */
export function frontProxyNames({
  identityHeaders = { names: [], prefixes: [] },
}: Pick<Authenticator, "identityHeaders">): (name: string) => boolean {
  const dashed = (name: string): string => name.toLowerCase().replaceAll("_", "-");
  const names = new Set([...FRONT_PROXY.names, ...identityHeaders.names.map(dashed)]);
  const prefixes = [...FRONT_PROXY.prefixes, ...identityHeaders.prefixes.map(dashed)];
  return (name) => {
    const lower = name.toLowerCase();
    const usual = lower.includes("_") ? lower.replaceAll("_", "-") : lower;
    return names.has(usual) || prefixes.some((prefix) => usual.startsWith(prefix));
  };
}

export function withoutFrontProxy(
  headers: HeaderList,
  authenticator: Pick<Authenticator, "identityHeaders">,
): HeaderList {
  const isDropped = frontProxyNames(authenticator);
  return headers.filter(([name]) => !isDropped(name));
}
