import { firstHeaderValue, type HeaderLines, hasToken, headerValues, tokenList } from "./header-lines.ts";

/** RFC 6455 section 1.3: the accept value is the SHA-1 of the key and this, in base64. Callers hash. */
export const ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const SUPPORTED_VERSION = "13";

/**
 * Whether Kubernetes treats this request as a WebSocket: `Upgrade` is exactly `websocket` and any `Connection`
 * line *contains* "upgrade", in any case. Looser than RFC 6455; Kubernetes treats all other requests as SPDY or
 * plain HTTP.
 */
export function isWebSocketUpgrade(lines: HeaderLines): boolean {
  const isNamed = firstHeaderValue(lines, "Upgrade").toLowerCase() === "websocket";
  return (
    isNamed && headerValues(lines, "Connection").some((value) => value.toLowerCase().includes("upgrade"))
  );
}

/**
 * RFC 6455 section 4.2.1: both headers have the token. gorilla/websocket and other strict peers require it.
 */
export function hasWebSocketTokens(lines: HeaderLines): boolean {
  return (
    hasToken(headerValues(lines, "Upgrade"), "websocket") &&
    hasToken(headerValues(lines, "Connection"), "upgrade")
  );
}

/** The subprotocols a client offers, preferred first. Only the first line counts, as for Kubernetes and x/net. */
export function offeredSubprotocols(lines: HeaderLines): string[] {
  return tokenList(headerValues(lines, "Sec-WebSocket-Protocol").slice(0, 1));
}

export interface HandshakeRequest {
  readonly method: string;
  readonly rawHeaders: HeaderLines;
}

export type ServerHandshake =
  | { readonly ok: true; readonly key: string; readonly protocols: readonly string[] }
  | {
      readonly ok: false;
      readonly status: number;
      readonly headers: readonly (readonly [name: string, value: string])[];
      readonly body: string;
    };

/**
 * The checks of golang.org/x/net/websocket (`ReadHandshake`), in its order and with its texts, because clients of
 * the kubelet and of CRI runtimes know them. As there, any key is accepted: a wrong one harms only the client.
 */
export function checkServerHandshake(request: HandshakeRequest): ServerHandshake {
  const lines = request.rawHeaders;
  if (request.method !== "GET") return refused(405, "bad method");
  if (!isWebSocketUpgrade(lines)) return refused(400, "not websocket protocol");
  const key = firstHeaderValue(lines, "Sec-WebSocket-Key");
  if (key === "") return refused(400, "mismatch challenge/response");
  if (firstHeaderValue(lines, "Sec-WebSocket-Version") !== SUPPORTED_VERSION) {
    return refused(400, "missing or bad WebSocket Version", [["Sec-WebSocket-Version", SUPPORTED_VERSION]]);
  }
  return { ok: true, key, protocols: offeredSubprotocols(lines) };
}

function refused(
  status: number,
  body: string,
  headers: readonly (readonly [string, string])[] = [],
): ServerHandshake {
  return { ok: false, status, headers, body };
}

/**
 * The client's first preference that the server accepts, compared exactly. If nothing is offered, "" counts, which
 * a server without a need for a subprotocol accepts. Undefined: nothing in common; answer with the bare 403.
 */
export function negotiateSubprotocol(
  offered: readonly string[],
  accepted: readonly string[],
): string | undefined {
  if (offered.length === 0) return accepted.includes("") ? "" : undefined;
  return offered.find((protocol) => accepted.includes(protocol));
}

/** x/net's refusal of all subprotocols: no headers, no body; the connection ends after it. */
export const FORBIDDEN_RESPONSE: Uint8Array = new TextEncoder().encode("HTTP/1.1 403 Forbidden\r\n\r\n");

/**
 * The 101 in x/net's order, never with an extension. Without a subprotocol it omits the line; x/net writes an
 * empty one, which strict clients (`ws`) refuse. The client must have offered the subprotocol.
 */
export function encodeSwitchingProtocols(accept: string, subprotocol: string | undefined): Uint8Array {
  const lines = [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${accept}`,
  ];
  if (subprotocol !== undefined && subprotocol !== "") lines.push(`Sec-WebSocket-Protocol: ${subprotocol}`);
  return new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`);
}
