import { isWebSocketUpgrade, parseBearerSubprotocol } from "../../../protocols/websocket/index.ts";
import type { CredentialsRequest } from "./authenticator.ts";

/** The token of `Authorization: Bearer <token>`; the scheme in any case, the first line only, as kube-apiserver reads it. */
export function bearerTokenOf(request: CredentialsRequest): string | undefined {
  const header = request.headers.find(([name]) => name.toLowerCase() === "authorization")?.[1].trim() ?? "";
  const [scheme, token] = header.split(" ", 3);
  return scheme?.toLowerCase() === "bearer" && token ? token : undefined;
}

/** The token that a browser, which cannot set headers on a WebSocket, offers as a subprotocol. An ill-formed one is no credential. */
export function subprotocolTokenOf(request: CredentialsRequest): string | undefined {
  const lines = request.headers.flat();
  if (!isWebSocketUpgrade(lines)) return undefined;
  const found = parseBearerSubprotocol(lines);
  return found.type === "token" ? found.token : undefined;
}
