import type { StatusError } from "@sluice/client/internal/api/status";
import { flatHeaders, type HeaderList, headerValues } from "@sluice/client/internal/http/header-list";
import { acceptValueOf } from "@sluice/client/internal/http/upgrade/websocket-request";
import {
  LEGACY_SUBPROTOCOLS,
  PORT_FORWARD_PROTOCOL,
  parsePortsQuery,
  tunnelOffers,
} from "@sluice/protocols/portforward";
import { CRI_WEBSOCKET_VERSIONS, SPDY_VERSIONS } from "@sluice/protocols/remotecommand";
import { checkServerHandshake } from "@sluice/protocols/websocket";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { Admission } from "./leg.ts";
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

/**
 * The protocol for a client whose protocol ends at a bridge, or a refusal worded as Kubernetes' own
 * servers word it.
 */
type BridgedProtocol =
  | { readonly ok: true; readonly protocol: string }
  | {
      readonly ok: false;
      readonly status: number;
      readonly headers: HeaderList;
      readonly body: string;
    };

/** The client's first known offer; "" is a WebSocket without a subprotocol, the oldest form. */
function bridgedProtocolOf({ subresource, offer, headers, ports }: StreamingRequest): BridgedProtocol {
  const isPortForward = subresource === "portforward";
  if (offer.transport === "spdy") {
    const accepted = isPortForward ? [PORT_FORWARD_PROTOCOL] : SPDY_VERSIONS;
    return spdyProtocolOf(offer.protocols, accepted, headers);
  }
  const offered = offer.transport === "websocket" ? offer.protocols : [];
  const tunnels = tunnelOffers(offered).map(({ subprotocol }) => subprotocol);
  if (isPortForward && tunnels.length === 0) {
    // Parsed as a kubelet would parse the same query.
    const parsed = parsePortsQuery(ports.length === 0 ? [] : [ports.join(",")]);
    if (!parsed.ok) return { ok: false, status: 400, headers: [], body: `${parsed.reason}\n` };
  }
  if (offered.length === 0) return { ok: true, protocol: "" };
  const known: readonly string[] = isPortForward
    ? [...tunnels, ...LEGACY_SUBPROTOCOLS]
    : CRI_WEBSOCKET_VERSIONS;
  const protocol = offered.find((name) => known.includes(name));
  // golang.org/x/net/websocket answers 403 with an empty body.
  return protocol === undefined
    ? refused(WIRE_ERRORS["websocket-protocol-unknown"].streaming())
    : { ok: true, protocol };
}

/** Negotiates as k8s.io/streaming does. */
function spdyProtocolOf(
  offered: readonly string[],
  accepted: readonly string[],
  headers: HeaderList,
): BridgedProtocol {
  if (offered.length === 0) {
    const values = headerValues(headers, "x-stream-protocol-version");
    const count = new Set(headers.map(([name]) => name.toLowerCase())).size;
    const problem =
      values.length === 0
        ? `does not exist in request with ${count} headers`
        : `contains [${values.join(" ")}], but no valid protocols`;
    return refused(WIRE_ERRORS["spdy-protocol-missing"].streaming({ problem }));
  }
  const protocol = offered.find((name) => accepted.includes(name));
  if (protocol !== undefined) return { ok: true, protocol };
  const names = { offered: offered.join(" "), accepted: accepted.join(" ") };
  const lines = accepted.map((name) => ["X-Accepted-Stream-Protocol-Versions", name] as const);
  return refused(WIRE_ERRORS["spdy-protocol-unknown"].streaming(names), lines);
}

function refused({ code: status, message: body }: StatusError, headers: HeaderList = []): BridgedProtocol {
  return { ok: false, status, headers, body };
}
