import type { CredentialsRequest } from "./authenticator.ts";

/** How a browser, which cannot set headers on a WebSocket, sends its token (kubernetes/kubernetes#47740). */
export const BEARER_PROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io.";

/** The token of `Authorization: Bearer <token>`; the scheme in any case, the first line only, as kube-apiserver reads it. */
export function bearerTokenOf(request: CredentialsRequest): string | undefined {
  const header = request.headers.find(([name]) => name.toLowerCase() === "authorization")?.[1].trim() ?? "";
  const [scheme, token] = header.split(" ", 3);
  return scheme?.toLowerCase() === "bearer" && token ? token : undefined;
}

export type SubprotocolToken =
  | { readonly type: "none" }
  /** `protocols`: what the client offers besides the token; only these may travel on. */
  | { readonly type: "token"; readonly token: string; readonly protocols: readonly string[] }
  | { readonly type: "malformed"; readonly message: string };

/** Reads a bearer token from the offered WebSocket subprotocols, with kube-apiserver's rules and texts. */
export function subprotocolTokenOf(offered: readonly string[]): SubprotocolToken {
  const tokens = offered.filter((protocol) => protocol.startsWith(BEARER_PROTOCOL_PREFIX));
  const [encoded] = tokens.map((protocol) => protocol.slice(BEARER_PROTOCOL_PREFIX.length));
  if (encoded === undefined) return { type: "none" };
  if (tokens.length > 1) {
    return { type: "malformed", message: "multiple base64.bearer.authorization tokens specified" };
  }
  const token = decodeToken(encoded);
  if (token === undefined) {
    return { type: "malformed", message: "invalid base64.bearer.authorization token encoding" };
  }
  const protocols = offered.filter((protocol) => !protocol.startsWith(BEARER_PROTOCOL_PREFIX));
  // A server must choose one of the offered protocols, and it must not be the token: it would be echoed in clear.
  if (protocols.length === 0) return { type: "malformed", message: "missing additional subprotocol" };
  return { type: "token", token, protocols };
}

function decodeToken(encoded: string): string | undefined {
  const bytes = Buffer.from(encoded, "base64url");
  // Buffer skips what is no base64; only an exact round trip is a well-formed, unpadded encoding.
  if (bytes.byteLength === 0 || bytes.toString("base64url") !== encoded) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
