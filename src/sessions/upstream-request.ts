import { tunnelOffers } from "../../protocols/portforward/index.ts";
import { RESUME_HEADER, RESUME_PROTOCOL } from "../../protocols/resume/index.ts";
import { withoutIdentity } from "../access/authn/identity-headers.ts";
import { withForwardedFor } from "../http/forwarded-headers.ts";
import { type HeaderLine, type HeaderList, listElements, withoutHeaders } from "../http/header-list.ts";
import { withoutHopByHop } from "../http/hop-by-hop.ts";
import {
  newWebSocketRequest,
  type WebSocketRequest,
  webSocketRequestLines,
} from "../http/upgrade/websocket-request.ts";
import type { Admission } from "./admission.ts";
import { upstreamProtocolOf } from "./bridge-offer.ts";
import type { Plan } from "./plan.ts";
import type { StreamingRequest } from "./streaming-request.ts";

/** What is sent to a kubelet, or to the streaming server of its runtime, to open a session. */
export interface UpstreamRequest {
  readonly method: string;
  /** Path and query, encoded for the wire. */
  readonly path: string;
  readonly headers: HeaderList;
  /** What a good 101 switches to. */
  readonly upgrade: "websocket" | "SPDY/3.1";
  /** Where we are the client of a WebSocket ourselves: what its answer is judged by. */
  readonly webSocket?: WebSocketRequest | undefined;
}

/** v1 is never offered: its failures are lost (a Go client takes them for exit code 0). No SPDY server speaks v5. */
const SPDY_VERSIONS_OFFERED = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"];

/** They are about the client's own connection. Extensions do not travel: compression would change bytes that are relayed. */
const CLIENT_ONLY_HEADERS = [
  "host",
  "content-length",
  "sec-websocket-extensions",
  "sluice-reason",
  RESUME_HEADER.toLowerCase(),
];
/** What our own request says in their place. Versions that the client wrote would be offered in our name. */
const REPLACED_HEADERS = [
  "sec-websocket-protocol",
  "sec-websocket-key",
  "sec-websocket-version",
  "x-stream-protocol-version",
];

/**
 * Builds the request that opens the session at `path`, with the client's headers as far as the plan lets them through, and with its
 * credentials where `keepsIdentity`: to an API server.
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

/** The SPDY protocols that our own request offers, by the plan; none where the client's request passes through. */
export function offeredStreamProtocols({
  request,
  plan,
}: Pick<Admission, "request" | "plan">): readonly string[] {
  if (plan.kind === "translate") return SPDY_VERSIONS_OFFERED;
  if (plan.kind !== "tunnel" || request.offer.transport !== "websocket") return [];
  return [...new Set(tunnelOffers(request.offer.protocols).map(({ spdyProtocol }) => spdyProtocol))];
}

/** The client's headers without identity and hop-by-hop ones (those that Connection names too), its address added. */
function forwardedHeaders(request: StreamingRequest, keepsIdentity = false): HeaderLine[] {
  const lines = withoutHopByHop(request.headers);
  const kept = withoutHeaders(keepsIdentity ? lines : withoutIdentity(lines), CLIENT_ONLY_HEADERS)
    .map(withoutResumption)
    .filter((line) => line !== undefined);
  return withForwardedFor(kept, { peerAddress: request.remoteAddress, isPeerTrusted: request.isPeerTrusted });
}

/** Resumption is agreed between us and the client alone. */
function withoutResumption(line: HeaderLine): HeaderLine | undefined {
  const [name, value] = line;
  if (name.toLowerCase() !== "sec-websocket-protocol" || !value.includes(RESUME_PROTOCOL)) return line;
  const protocols = listElements([value]).filter((protocol) => protocol !== RESUME_PROTOCOL);
  return protocols.length === 0 ? undefined : [name, protocols.join(", ")];
}
