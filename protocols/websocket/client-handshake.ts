import { firstHeaderValue, type HeaderLines, hasToken, headerValues } from "./header-lines.ts";

export interface HandshakeResponse {
  readonly status: number;
  /** The status line's reason phrase; "" if it has none. */
  readonly statusText: string;
  readonly rawHeaders: HeaderLines;
}

/** The parts of our request that the response must match. */
export interface ClientOffer {
  /** The accept value for the key we sent. */
  readonly accept: string;
  /** The subprotocols we offered. If there are any, a response without one fails. */
  readonly protocols: readonly string[];
}

export type HandshakeFailure = "status" | "upgrade" | "connection" | "accept" | "extension" | "subprotocol";

export type ClientHandshake =
  | { readonly ok: true; readonly subprotocol: string }
  | { readonly ok: false; readonly reason: HandshakeFailure; readonly message: string };

/**
 * Checks a response like client-go (gorilla's dialer, then its own check of the subprotocol).
 * `message` has client-go's words. kubectl falls back to SPDY on every one of these failures,
 * because an HTTP response was read.
 */
export function checkClientHandshake(response: HandshakeResponse, offer: ClientOffer): ClientHandshake {
  const { status, rawHeaders } = response;
  if (status !== 101) return badHandshake("status", response);
  if (!hasToken(headerValues(rawHeaders, "Upgrade"), "websocket")) return badHandshake("upgrade", response);
  if (!hasToken(headerValues(rawHeaders, "Connection"), "upgrade"))
    return badHandshake("connection", response);
  if (firstHeaderValue(rawHeaders, "Sec-WebSocket-Accept") !== offer.accept)
    return badHandshake("accept", response);

  // gorilla accepts some of these. We offer no extension, so RFC 6455 section 4.1 makes each one a
  // failure.
  if (headerValues(rawHeaders, "Sec-WebSocket-Extensions").some((value) => value !== "")) {
    return { ok: false, reason: "extension", message: "websocket: invalid compression negotiation" };
  }
  // x/net sends an empty line if no subprotocol was offered; it counts as no line.
  const subprotocol = firstHeaderValue(rawHeaders, "Sec-WebSocket-Protocol");
  const isExpected =
    offer.protocols.includes(subprotocol) || (offer.protocols.length === 0 && subprotocol === "");
  if (isExpected) return { ok: true, subprotocol };
  const expected = offer.protocols.map(quoted).join(" ");
  const message = `invalid protocol, expected one of [${expected}], got ${quoted(subprotocol)}`;
  return { ok: false, reason: "subprotocol", message };
}

/**
 * client-go's message for a failed upgrade, as kubectl prints it. `body` is the response's body,
 * unless that is a Kubernetes Status; then pass the Status' message as `cause`.
 */
export function upgradeFailureText(cause: string, body?: string): string {
  return `unable to upgrade streaming request: ${cause}${body === undefined ? "" : `: ${body}`}`;
}

function badHandshake(reason: HandshakeFailure, { status, statusText }: HandshakeResponse): ClientHandshake {
  // Go's Response.Status: code, a space, and the phrase, even an empty one.
  return { ok: false, reason, message: `websocket: bad handshake (${status} ${statusText})` };
}

/** Go's %q, for characters that a header can contain. */
function quoted(value: string): string {
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}
