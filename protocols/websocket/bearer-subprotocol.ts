import { type HeaderLines, headerValues, tokenList } from "./header-lines.ts";

/** Browsers cannot set Authorization on a WebSocket; Kubernetes lets them offer the token as a subprotocol. */
const BEARER_SUBPROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io.";

export type BearerSubprotocol =
  /**
   * The token and the other protocols. Replace the header with the latter, so that no upstream and
   * no log sees the token.
   */
  | { readonly type: "token"; readonly token: string; readonly protocols: readonly string[] }
  | { readonly type: "none" }
  /** kube-apiserver's message. It never contains the token. */
  | { readonly type: "invalid"; readonly message: string };

const BASE64URL = /^[A-Za-z0-9_-]*$/;

/**
 * Finds the bearer token among the offered subprotocols, in all lines, by kube-apiserver's rules
 * (`authentication/request/websocket`). Call it only for WebSocket requests without another valid
 * credential.
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
  // An empty token is not a credential: kube-apiserver continues as if none was offered.
  if (token === undefined || token === "") return { type: "none" };
  if (protocols.length === 0) return invalid("missing additional subprotocol");
  return { type: "token", token, protocols };
}

/** The subprotocol that offers a token. Offer another one beside it. */
export function bearerSubprotocol(token: string): string {
  const binary = String.fromCharCode(...new TextEncoder().encode(token));
  const base64 = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return BEARER_SUBPROTOCOL_PREFIX + base64;
}

/** The offer without bearer subprotocols, valid or not. Only this may be forwarded, echoed or logged. */
export function withoutBearerSubprotocols(protocols: readonly string[]): string[] {
  return protocols.filter((protocol) => !protocol.startsWith(BEARER_SUBPROTOCOL_PREFIX));
}

function invalid(message: string): BearerSubprotocol {
  return { type: "invalid", message };
}

/** Go's RawURLEncoding: no padding; like Go, ignores the last character's unused bits. */
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
