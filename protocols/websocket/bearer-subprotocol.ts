import { type HeaderLines, headerValues, tokenList } from "./header-lines.ts";

/** Browsers cannot set Authorization on a WebSocket; Kubernetes lets them offer the token as a subprotocol. */
export const BEARER_SUBPROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io.";

export type BearerSubprotocol =
  /** Token and other protocols; the latter replace the header, so that no upstream and no log sees the token. */
  | { readonly type: "token"; readonly token: string; readonly protocols: readonly string[] }
  | { readonly type: "none" }
  /** kube-apiserver's words. They never contain the token. */
  | { readonly type: "invalid"; readonly message: string };

const BASE64URL = /^[A-Za-z0-9_-]*$/;

/**
 * Finds the bearer token among the offered subprotocols, over all lines, by the rules of kube-apiserver
 * (`authentication/request/websocket`). Ask only for WebSocket requests that no other credential has authenticated.
 */
export function parseBearerSubprotocol(lines: HeaderLines): BearerSubprotocol {
  let token: string | undefined;
  const protocols: string[] = [];
  for (const protocol of tokenList(headerValues(lines, "Sec-WebSocket-Protocol"))) {
    if (!protocol.startsWith(BEARER_SUBPROTOCOL_PREFIX)) {
      protocols.push(protocol);
      continue;
    }
    if (token !== undefined) return invalid("multiple base64.bearer.authorization tokens specified");
    const bytes = decodeBase64Url(protocol.slice(BEARER_SUBPROTOCOL_PREFIX.length));
    if (bytes === undefined) return invalid("invalid base64.bearer.authorization token encoding");
    token = decodeUtf8(bytes);
    if (token === undefined) return invalid("invalid base64.bearer.authorization token");
  }
  // An empty token is no credential: kube-apiserver goes on as if none had been offered.
  if (token === undefined || token === "") return { type: "none" };
  if (protocols.length === 0) return invalid("missing additional subprotocol");
  return { type: "token", token, protocols };
}

/** The offer without bearer subprotocols, valid or not: what may be forwarded, echoed or logged. */
export function withoutBearerSubprotocols(protocols: readonly string[]): string[] {
  return protocols.filter((protocol) => !protocol.startsWith(BEARER_SUBPROTOCOL_PREFIX));
}

function invalid(message: string): BearerSubprotocol {
  return { type: "invalid", message };
}

/** Go's RawURLEncoding: no padding, and like it lenient about the unused bits of the last character. */
function decodeBase64Url(text: string): Uint8Array | undefined {
  if (!BASE64URL.test(text) || text.length % 4 === 1) return undefined;
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
