import { firstHeaderValue, type HeaderLines, hasToken, headerValues } from "./header-lines.ts";

export interface HandshakeResponse {
  readonly status: number;
  /** The reason phrase of the status line, "" when there is none. */
  readonly statusText: string;
  readonly rawHeaders: HeaderLines;
}

/** What we sent, to judge the answer by. */
export interface ClientOffer {
  /** The accept value that belongs to the key we sent. */
  readonly accept: string;
  /** The subprotocols we offered; none of them in an answer is a failure, unless there were none. */
  readonly protocols: readonly string[];
}

export type HandshakeFailure = "status" | "upgrade" | "connection" | "accept" | "extension" | "subprotocol";

export type ClientHandshake =
  | { readonly ok: true; readonly subprotocol: string }
  | { readonly ok: false; readonly reason: HandshakeFailure; readonly message: string };

/**
 * Judges a server's answer as client-go does (gorilla's dialer, then its own check of the subprotocol). `message` has
 * client-go's words; every failure is one that makes kubectl fall back to SPDY, because an HTTP response was read.
 */
export function checkClientHandshake(response: HandshakeResponse, offer: ClientOffer): ClientHandshake {
  const { status, rawHeaders } = response;
  if (status !== 101) return badHandshake("status", response);
  if (!hasToken(headerValues(rawHeaders, "Upgrade"), "websocket")) return badHandshake("upgrade", response);
  if (!hasToken(headerValues(rawHeaders, "Connection"), "upgrade"))
    return badHandshake("connection", response);
  if (firstHeaderValue(rawHeaders, "Sec-WebSocket-Accept") !== offer.accept)
    return badHandshake("accept", response);

  // gorilla accepts some answers here. We offer no extension, so RFC 6455 section 4.1 makes every one a failure.
  if (headerValues(rawHeaders, "Sec-WebSocket-Extensions").some((value) => value !== "")) {
    return { ok: false, reason: "extension", message: "websocket: invalid compression negotiation" };
  }
  // x/net answers with an empty line when no subprotocol was offered: the same as no line.
  const subprotocol = firstHeaderValue(rawHeaders, "Sec-WebSocket-Protocol");
  const isExpected =
    offer.protocols.includes(subprotocol) || (offer.protocols.length === 0 && subprotocol === "");
  if (isExpected) return { ok: true, subprotocol };
  const expected = offer.protocols.map(quoted).join(" ");
  const message = `invalid protocol, expected one of [${expected}], got ${quoted(subprotocol)}`;
  return { ok: false, reason: "subprotocol", message };
}

/**
 * client-go's text of a failed upgrade, as kubectl prints it. `body` is the answer's, when it is not a Kubernetes Status;
 * of a Status, pass its message as `cause`.
 */
export function upgradeFailureText(cause: string, body?: string): string {
  return `unable to upgrade streaming request: ${cause}${body === undefined ? "" : `: ${body}`}`;
}

function badHandshake(reason: HandshakeFailure, { status, statusText }: HandshakeResponse): ClientHandshake {
  // Go's Response.Status: code, a space, and the phrase even if that is empty.
  return { ok: false, reason, message: `websocket: bad handshake (${status} ${statusText})` };
}

/** Go's %q for what a header can carry. */
function quoted(value: string): string {
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}
