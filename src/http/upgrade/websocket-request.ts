import { hash, randomBytes } from "node:crypto";
import {
  ACCEPT_GUID,
  type ClientHandshake,
  checkClientHandshake,
} from "../../../protocols/websocket/index.ts";
import { flatHeaders, type HeaderLine } from "../header-list.ts";
import type { SwitchedUpgrade } from "./upgrade-request.ts";

/** What we, as the client of a WebSocket, sent; its answer is judged by it. */
export interface WebSocketRequest {
  /** Sec-WebSocket-Key: 16 random bytes in base64 (RFC 6455 section 4.1). */
  readonly key: string;
  /** The subprotocols that we offer, best first. */
  readonly protocols: readonly string[];
}

export function newWebSocketRequest(protocols: readonly string[]): WebSocketRequest {
  return { key: randomBytes(16).toString("base64"), protocols };
}

/** The lines that ask for it, to stand behind Connection and Upgrade. No extension is ever offered. */
export function webSocketRequestLines({ key, protocols }: WebSocketRequest): HeaderLine[] {
  return [
    ["Sec-WebSocket-Version", "13"],
    ["Sec-WebSocket-Key", key],
    ...(protocols.length === 0 ? [] : [["Sec-WebSocket-Protocol", protocols.join(", ")] as const]),
  ];
}

/** Judges a 101 as strictly as client-go: the accept value, no extension, one of the subprotocols that were offered. */
export function checkWebSocketAnswer(
  { statusMessage: statusText, rawHeaders }: Pick<SwitchedUpgrade, "statusMessage" | "rawHeaders">,
  { key, protocols }: WebSocketRequest,
): ClientHandshake {
  return checkClientHandshake(
    { status: 101, statusText, rawHeaders: flatHeaders(rawHeaders) },
    { accept: acceptValueOf(key), protocols },
  );
}

/** The value of Sec-WebSocket-Accept that answers a key (RFC 6455 section 4.2.2). */
export function acceptValueOf(key: string): string {
  return hash("sha1", key + ACCEPT_GUID, "base64");
}
