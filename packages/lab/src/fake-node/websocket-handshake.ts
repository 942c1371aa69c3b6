import { createHash } from "node:crypto";
import {
  ACCEPT_GUID,
  checkServerHandshake,
  encodeSwitchingProtocols,
  type HandshakeRequest,
  negotiateSubprotocol,
} from "@sluice/protocols/websocket";
import { httpError, type Refusal } from "./refusal.ts";

type WebSocketHandshake =
  | { readonly ok: true; readonly subprotocol: string; readonly switching: Uint8Array }
  | { readonly ok: false; readonly refusal: Refusal };

/** golang.org/x/net/websocket's answers, used by a kubelet's translator and by CRI servers. */
export function checkWebSocketHandshake(
  request: HandshakeRequest,
  accepted: readonly string[],
): WebSocketHandshake {
  const handshake = checkServerHandshake(request);
  if (!handshake.ok) return { ok: false, refusal: { ...handshake, isBare: true } };
  const subprotocol = negotiateSubprotocol(handshake.protocols, accepted);
  if (subprotocol === undefined) {
    return { ok: false, refusal: { status: 403, headers: [], body: "", isBare: true } };
  }
  return { ok: true, subprotocol, switching: switchingProtocols(handshake.key, subprotocol) };
}

/** gorilla/websocket's answers, used by a kubelet's tunnel. */
export function checkTunnelHandshake(request: HandshakeRequest, subprotocol: string): WebSocketHandshake {
  const handshake = checkServerHandshake(request);
  if (handshake.ok)
    return { ok: true, subprotocol, switching: switchingProtocols(handshake.key, subprotocol) };
  const line = handshake.status === 405 ? "Method Not Allowed" : "Bad Request";
  return { ok: false, refusal: httpError(handshake.status, line, [["Sec-Websocket-Version", "13"]]) };
}

function switchingProtocols(key: string, subprotocol: string): Uint8Array {
  const accept = createHash("sha1")
    .update(key + ACCEPT_GUID)
    .digest("base64");
  if (subprotocol !== "") return encodeSwitchingProtocols(accept, subprotocol);
  // x/net writes the line even if it is empty. Strict clients refuse that; gateways must survive
  // it.
  const head = Buffer.from(encodeSwitchingProtocols(accept, undefined)).toString("latin1");
  return Buffer.from(head.replace(/\r\n$/, "Sec-WebSocket-Protocol: \r\n\r\n"), "latin1");
}
