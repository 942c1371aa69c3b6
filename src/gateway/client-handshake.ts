import { createHash } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  ACCEPT_GUID,
  checkServerHandshake,
  encodeSwitchingProtocols,
} from "../../protocols/websocket/index.ts";
import { flatHeaders } from "../upstream/header-list.ts";
import { type AnswerContext, answerAndClose } from "./answer.ts";
import type { PreparedStreaming } from "./prepare-streaming.ts";

/** A client whose upgrade request can be answered with a 101. */
export interface ClientHandshake {
  /** The head of the 101 that chooses this subprotocol. Only for WebSocket clients whose protocol ends here. */
  switchTo(subprotocol: string): Uint8Array;
}

/** The WebSocket request itself is wrong. Answered in plain text, as Go's x/net server answers it. */
export class HandshakeRefusal extends Error {
  override readonly name = "HandshakeRefusal";
  readonly status: number;
  readonly #headers: readonly (readonly [string, string])[];

  constructor(status: number, headers: readonly (readonly [string, string])[], body: string) {
    super(body);
    this.status = status;
    this.#headers = headers;
  }

  writeTo(socket: Duplex, context: AnswerContext): void {
    const headers = [...this.#headers, ["Content-Type", "text/plain; charset=utf-8"] as const];
    answerAndClose(socket, this.status, headers, Buffer.from(this.message), context);
  }
}

/**
 * Checks the client's upgrade where the gateway itself answers it; a request that is passed through is judged by the node.
 * Throws HandshakeRefusal.
 */
export function checkClientHandshake({ plan, request }: PreparedStreaming): ClientHandshake {
  if (plan.kind === "pass-through") return { switchTo: unanswerable };
  const handshake = checkServerHandshake({
    method: request.method,
    rawHeaders: flatHeaders(request.headers),
  });
  if (!handshake.ok) throw new HandshakeRefusal(handshake.status, handshake.headers, handshake.body);
  return {
    switchTo: (subprotocol) => encodeSwitchingProtocols(acceptValueOf(handshake.key), subprotocol),
  };
}

function acceptValueOf(key: string): string {
  return createHash("sha1")
    .update(key + ACCEPT_GUID)
    .digest("base64");
}

function unanswerable(): never {
  throw new Error("a request that is passed through is answered by the node");
}
