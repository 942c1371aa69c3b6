import { flatHeaders, type HeaderList } from "@sluice/client/internal/http/header-list";
import { acceptValueOf } from "@sluice/client/internal/http/upgrade/websocket-request";
import { checkServerHandshake } from "@sluice/protocols/websocket";
import type { Admission } from "./admission.ts";
import { bridgedProtocolOf } from "./bridge-offer.ts";
import type { StreamingRequest } from "./streaming-request.ts";

/** A validated upgrade request, ready for its 101. */
export interface ClientHandshake {
  /** The protocol agreed with a bridged client; "" for a WebSocket without a subprotocol. */
  readonly protocol: string;
  /** The headers of a 101 that chooses this protocol. Only for clients whose protocol ends at the gateway. */
  switchTo(protocol: string): HeaderList;
}

/**
 * The upgrade request itself is invalid. Answered in plain text, as Go's servers do; the message is
 * the body.
 */
export class HandshakeRefusal extends Error {
  override readonly name = "HandshakeRefusal";
  readonly status: number;
  readonly headers: HeaderList;

  constructor(status: number, headers: HeaderList, body: string) {
    super(body);
    this.status = status;
    this.headers = headers;
  }
}

/**
 * Validates the client's upgrade if the gateway answers it; with pass-through the node validates it.
 * Throws HandshakeRefusal.
 */
export function checkClientHandshake({
  plan,
  request,
}: Pick<Admission, "plan" | "request">): ClientHandshake {
  if (plan.kind === "pass-through") return { protocol: "", switchTo: unanswerable };
  const protocol = plan.kind === "bridge" ? bridgedProtocol(request) : "";
  if (request.offer.transport === "spdy") return { protocol, switchTo: switchToSpdy };
  const handshake = checkServerHandshake({
    method: request.method,
    rawHeaders: flatHeaders(request.headers),
  });
  if (!handshake.ok) throw new HandshakeRefusal(handshake.status, handshake.headers, handshake.body);
  return {
    protocol,
    switchTo: (subprotocol) => [
      ["Upgrade", "websocket"],
      ["Connection", "Upgrade"],
      ["Sec-WebSocket-Accept", acceptValueOf(handshake.key)],
      ...(subprotocol === "" ? [] : [["Sec-WebSocket-Protocol", subprotocol] as const]),
    ],
  };
}

function bridgedProtocol(request: StreamingRequest): string {
  const bridged = bridgedProtocolOf(request);
  if (bridged.ok) return bridged.protocol;
  throw new HandshakeRefusal(bridged.status, bridged.headers, bridged.body);
}

function switchToSpdy(protocol: string): HeaderList {
  return [
    ["Connection", "Upgrade"],
    ["Upgrade", "SPDY/3.1"],
    ["X-Stream-Protocol-Version", protocol],
  ];
}

function unanswerable(): never {
  throw new Error("a request that is passed through is answered by the node");
}
