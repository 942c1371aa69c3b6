import { hash, randomBytes } from "node:crypto";
import { ACCEPT_GUID, type ClientHandshake, checkClientHandshake } from "@sluice/protocols/websocket";
import { flatHeaders, type HeaderLine } from "../header-list.ts";
import type { SwitchedUpgrade } from "./upgrade-request.ts";

/** Our WebSocket request as a client; validates the answer. */
export interface WebSocketRequest {
  /** Sec-WebSocket-Key: 16 random bytes in base64 (RFC 6455 section 4.1). */
  readonly key: string;
  /** The offered subprotocols, best first. */
  readonly protocols: readonly string[];
}

export function newWebSocketRequest(protocols: readonly string[]): WebSocketRequest {
  return { key: randomBytes(16).toString("base64"), protocols };
}

/** The request's headers besides Connection and Upgrade. Offers no extension. */
export function webSocketRequestLines({ key, protocols }: WebSocketRequest): HeaderLine[] {
  return [
    ["Sec-WebSocket-Version", "13"],
    ["Sec-WebSocket-Key", key],
    ...(protocols.length === 0 ? [] : [["Sec-WebSocket-Protocol", protocols.join(", ")] as const]),
  ];
}

/** Validates a 101 as strictly as client-go: the accept value, no extension, and an offered subprotocol. */
export function checkWebSocketAnswer(
  { statusMessage: statusText, rawHeaders }: Pick<SwitchedUpgrade, "statusMessage" | "rawHeaders">,
  { key, protocols }: WebSocketRequest,
): ClientHandshake {
  return checkClientHandshake(
    { status: 101, statusText, rawHeaders: flatHeaders(rawHeaders) },
    { accept: acceptValueOf(key), protocols },
  );
}

/** The Sec-WebSocket-Accept value for a key (RFC 6455 section 4.2.2). */
export function acceptValueOf(key: string): string {
  return hash("sha1", key + ACCEPT_GUID, "base64");
}
