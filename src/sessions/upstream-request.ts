import { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import {
  type HeaderLine,
  type HeaderList,
  listElements,
  withoutHeaders,
} from "@sluice/client/internal/http/header-list";
import {
  newWebSocketRequest,
  type WebSocketRequest,
  webSocketRequestLines,
} from "@sluice/client/internal/http/upgrade/websocket-request";
import { PORT_FORWARD_PROTOCOL, tunnelOffers, tunnelSubprotocolOf } from "@sluice/protocols/portforward";
import { RESUME_HEADER, RESUME_PROTOCOL } from "@sluice/protocols/resume";
import { withoutIdentity } from "../access/authn/identity-headers.ts";
import { addForwardedFor } from "../http/forwarded-headers.ts";
import { requestEdit } from "../http/hop-by-hop.ts";
import type { Admission } from "./leg.ts";
import type { Plan } from "./plan.ts";
import type { StreamingRequest, Subresource } from "./streaming-request.ts";

/** A request that opens a session at a kubelet or at a runtime's streaming server. */
export interface UpstreamRequest {
  readonly method: string;
  /** Path and query, encoded for the wire. */
  readonly path: string;
  readonly headers: HeaderList;
  /** The protocol that a valid 101 must switch to. */
  readonly upgrade: "websocket" | "SPDY/3.1";
  /** Validates the answer if the gateway itself is the WebSocket client. */
  readonly webSocket?: WebSocketRequest | undefined;
}

/**
 * v1 is never offered, because its failures are lost: a Go client takes them for exit code 0. No SPDY
 * server supports v5.
 */
const SPDY_VERSIONS_OFFERED = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"];

/**
 * Headers about the client's own connection. Extensions are not forwarded, since compression would
 * change relayed bytes.
 */
const CLIENT_ONLY_HEADERS = [
  "host",
  "content-length",
  "sec-websocket-extensions",
  "sluice-reason",
  RESUME_HEADER.toLowerCase(),
];
/**
 * Headers that the gateway's own request sets. The client's values would offer its versions in the
 * gateway's name.
 */
const REPLACED_HEADERS = [
  "sec-websocket-protocol",
  "sec-websocket-key",
  "sec-websocket-version",
  "x-stream-protocol-version",
];

/**
 * Builds the request that opens the session at `path`, with the client's headers as the plan allows.
 * `keepsIdentity`: also with its credentials, for an API server.
 */
export function upstreamRequestFor(
  request: StreamingRequest,
  path: string,
  plan: Plan,
  { keepsIdentity = false } = {},
): UpstreamRequest {
  switch (plan.kind) {
    case "translate":
      return {
        method: "POST",
        path,
        upgrade: "SPDY/3.1",
        headers: [...upgradeHeaders("SPDY/3.1"), ...streamProtocols({ request, plan })],
      };
    case "tunnel": {
      const forwarded = withoutHeaders(forwardedHeaders(request), REPLACED_HEADERS);
      return {
        method: "POST",
        path,
        upgrade: "SPDY/3.1",
        headers: [...upgradeHeaders("SPDY/3.1"), ...streamProtocols({ request, plan }), ...forwarded],
      };
    }
    case "bridge": {
      const webSocket = newWebSocketRequest([upstreamProtocolOf(request.subresource)]);
      const forwarded = withoutHeaders(forwardedHeaders(request), REPLACED_HEADERS);
      return {
        method: "GET",
        path,
        upgrade: "websocket",
        webSocket,
        headers: [...upgradeHeaders("websocket"), ...webSocketRequestLines(webSocket), ...forwarded],
      };
    }
    case "pass-through": {
      const upgrade = request.offer.transport === "websocket" ? "websocket" : "SPDY/3.1";
      return {
        method: request.method,
        path,
        upgrade,
        headers: [...upgradeHeaders(upgrade), ...forwardedHeaders(request, keepsIdentity)],
      };
    }
  }
}

function upgradeHeaders(upgrade: string): HeaderLine[] {
  return [
    ["Connection", "Upgrade"],
    ["Upgrade", upgrade],
  ];
}

function streamProtocols(admission: Pick<Admission, "request" | "plan">): HeaderLine[] {
  return offeredStreamProtocols(admission).map((version) => ["X-Stream-Protocol-Version", version]);
}

/**
 * The SPDY protocols that the gateway's own request offers under this plan; none if the client's
 * request passes through.
 */
export function offeredStreamProtocols({
  request,
  plan,
}: Pick<Admission, "request" | "plan">): readonly string[] {
  if (plan.kind === "translate") return SPDY_VERSIONS_OFFERED;
  if (plan.kind !== "tunnel" || request.offer.transport !== "websocket") return [];
  return [...new Set(tunnelOffers(request.offer.protocols).map(({ spdyProtocol }) => spdyProtocol))];
}

/**
 * The client's headers without identity and hop-by-hop headers (including those that Connection
 * lists), plus its address.
 */
function forwardedHeaders(request: StreamingRequest, keepsIdentity = false): HeaderLine[] {
  const lines = requestEdit(request.headers).lines();
  const kept = withoutHeaders(keepsIdentity ? lines : withoutIdentity(lines), CLIENT_ONLY_HEADERS)
    .map(withoutResumption)
    .filter((line) => line !== undefined);
  const edit = new HeaderEdit(kept);
  addForwardedFor(edit, { peerAddress: request.remoteAddress, isPeerTrusted: request.isPeerTrusted });
  return edit.lines();
}

/** The gateway and the client agree on resumption without the upstream. */
function withoutResumption(line: HeaderLine): HeaderLine | undefined {
  const [name, value] = line;
  if (name.toLowerCase() !== "sec-websocket-protocol" || !value.includes(RESUME_PROTOCOL)) return line;
  const protocols = listElements([value]).filter((protocol) => protocol !== RESUME_PROTOCOL);
  return protocols.length === 0 ? undefined : [name, protocols.join(", ")];
}

/** The protocol that the gateway, as a client, offers to an upstream that accepts only WebSocket. */
function upstreamProtocolOf(subresource: Subresource): string {
  return subresource === "portforward" ? tunnelSubprotocolOf(PORT_FORWARD_PROTOCOL) : "v5.channel.k8s.io";
}
