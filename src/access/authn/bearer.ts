import { isWebSocketUpgrade, parseBearerSubprotocol } from "@sluice/protocols/websocket";
import type { CredentialsRequest } from "./authenticator.ts";

/**
 * The token in `Authorization: Bearer <token>`; as in kube-apiserver, the scheme in any case and
 * only the first line.
 */
export function bearerTokenOf(request: CredentialsRequest): string | undefined {
  const header = request.headers.find(([name]) => name.toLowerCase() === "authorization")?.[1].trim() ?? "";
  const [scheme, token] = header.split(" ", 3);
  return scheme?.toLowerCase() === "bearer" && token ? token : undefined;
}

/**
 * The token that a browser offers as a subprotocol, since it cannot set headers on a WebSocket. A
 * malformed one is no credential.
 */
export function subprotocolTokenOf(request: CredentialsRequest): string | undefined {
  const lines = request.headers.flat();
  if (!isWebSocketUpgrade(lines)) return undefined;
  const found = parseBearerSubprotocol(lines);
  return found.type === "token" ? found.token : undefined;
}
