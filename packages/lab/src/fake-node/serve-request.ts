import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { NOTHING } from "@sluice/protocols/bytes";
import {
  LEGACY_SUBPROTOCOLS,
  PORT_FORWARD_PROTOCOL,
  parsePortsQuery,
  tunnelOffers,
  tunnelSubprotocolOf,
} from "@sluice/protocols/portforward";
import {
  CRI_WEBSOCKET_VERSIONS,
  isRemoteCommandVersion,
  type RequestedStreams,
  SPDY_VERSIONS,
} from "@sluice/protocols/remotecommand";
import { isWebSocketUpgrade, offeredSubprotocols } from "@sluice/protocols/websocket";
import type { CommandService } from "./command-session.ts";
import type { ForwardTarget } from "./forwarded-connection.ts";
import { type KubeletRoute, parseKubeletRoute } from "./kubelet-request.ts";
import { LegacyPortForward } from "./legacy-port-forward.ts";
import type { ServingContext } from "./open-connection.ts";
import { httpError, type Refusal, textRefusal } from "./refusal.ts";
import type { RunningPod } from "./running-pod.ts";
import { decideLog } from "./serve-log.ts";
import { SpdyCommand } from "./spdy-command.ts";
import { checkSpdyHandshake, checkTunnelHandshake, checkWebSocketHandshake } from "./spdy-handshake.ts";
import { SpdyPortForward } from "./spdy-port-forward.ts";
import { startCommand } from "./start-command.ts";
import { TunnelSocket } from "./tunnel-socket.ts";
import { WebSocketCommand } from "./websocket-command.ts";

/** Everything a node needs to answer a request. */
export interface ServingNode extends ServingContext {
  readonly declaresWebSockets: boolean;
  readonly refusesOtherProtocols: boolean;
  findPod(namespace: string, name: string): RunningPod | undefined;
}

/** Takes over the socket: writes the 101 and runs the session. */
type Serve = (socket: Duplex, head: Uint8Array) => void;

type Decision =
  | { readonly refusal: Refusal }
  | { readonly serve: Serve }
  /** Answers a request without an upgrade. */
  | { readonly respond: (response: ServerResponse) => void };

type Request = Pick<IncomingMessage, "method" | "url" | "rawHeaders">;

const TRANSLATED_VERSION = "v5.channel.k8s.io";

/**
 * Decides about a request in the order of kubelet and CRI server; the answer names the first fault.
 */
export function decide(request: Request, node: ServingNode): Decision {
  const route = parseKubeletRoute(request.url ?? "");
  if (route === undefined) return { refusal: httpError(404, "404 page not found") };
  const allowed = route.subresource === "containerLogs" ? ["GET"] : ["GET", "POST"];
  if (!allowed.includes(request.method ?? "")) {
    const refusal = textRefusal(405, "405: Method Not Allowed");
    return { refusal: { ...refusal, headers: [["Allow", allowed.join(", ")], ...refusal.headers] } };
  }
  if (route.subresource === "containerLogs") return decideLog(route, node);
  if (node.refusesOtherProtocols && asksForUpgrade(request) && !offersNewProtocol(request)) {
    return { refusal: textRefusal(403, "only WebSocket v5 and the tunnel pass here") };
  }
  return route.subresource === "portForward"
    ? decidePortForward(request, route, node)
    : decideCommand(request, route, node);
}

function decideCommand(request: Request, route: KubeletRoute, node: ServingNode): Decision {
  const requested = parseRequestedStreams(route.query);
  if (!requested.stdin && !requested.stdout && !requested.stderr) {
    return { refusal: textRefusal(400, "you must specify at least 1 of stdin, stdout, stderr") };
  }
  const running = node.findPod(route.namespace, route.pod);
  if (running === undefined) return { refusal: textRefusal(404, "pod does not exist") };
  const isOtherPod = route.uid !== undefined && route.uid !== running.pod.uid;
  const main = isOtherPod ? undefined : running.findContainer(route.container ?? "");
  if (main === undefined) {
    return { refusal: textRefusal(404, `container not found (${JSON.stringify(route.container)})`) };
  }
  if (main.hasExited) return { refusal: textRefusal(500, "container is in CONTAINER_EXITED state") };
  if (!asksForUpgrade(request)) return { refusal: httpError(500, "Upgrade request required") };

  const argv = route.query.getAll("command");
  const { maxStdinBufferBytes } = node.limits;
  const service: Omit<CommandService, "version"> = {
    subresource: route.subresource === "attach" ? "attach" : "exec",
    argv,
    requested,
    start: (handler, size) =>
      route.subresource === "attach"
        ? main.attach(requested, handler)
        : startCommand({ argv, requested, hostname: running.pod.name, maxStdinBufferBytes, size }, handler),
  };
  return isWebSocketUpgrade(request.rawHeaders)
    ? decideWebSocketCommand(request, service, node)
    : decideSpdyCommand(request, service, node);
}

function decideWebSocketCommand(
  request: Request,
  service: Omit<CommandService, "version">,
  node: ServingNode,
): Decision {
  const isTranslated =
    node.declaresWebSockets && offeredSubprotocols(request.rawHeaders).includes(TRANSLATED_VERSION);
  const accepted = isTranslated ? [TRANSLATED_VERSION] : ["", ...CRI_WEBSOCKET_VERSIONS];
  const handshake = checkWebSocketHandshake(
    { method: request.method ?? "", rawHeaders: request.rawHeaders },
    accepted,
  );
  if (!handshake.ok) return { refusal: handshake.refusal };
  const { subprotocol, switching } = handshake;
  // Without a subprotocol, the channels are those of v1.
  const version = isRemoteCommandVersion(subprotocol) ? subprotocol : "channel.k8s.io";
  return {
    serve: (socket, head) => {
      socket.write(switching);
      new WebSocketCommand(socket, head, { ...service, version }, node);
    },
  };
}

function decideSpdyCommand(
  request: Request,
  service: Omit<CommandService, "version">,
  node: ServingNode,
): Decision {
  const handshake = checkSpdyHandshake(request.rawHeaders, { accepted: SPDY_VERSIONS, isSaidTwice: true });
  if (!handshake.ok) return { refusal: handshake.refusal };
  const { protocol } = handshake;
  const version = isRemoteCommandVersion(protocol) ? protocol : "channel.k8s.io";
  return {
    serve: (socket, head) => {
      socket.write(handshake.switching);
      new SpdyCommand(socket, head, { ...service, version }, node);
    },
  };
}

function decidePortForward(request: Request, route: KubeletRoute, node: ServingNode): Decision {
  const isWebSocket = isWebSocketUpgrade(request.rawHeaders);
  const tunnel = node.declaresWebSockets && isWebSocket ? tunnelOffer(request) : undefined;
  const isLegacy = isWebSocket && tunnel === undefined;
  const ports = isLegacy ? parsePortsQuery(route.query.getAll("port")) : { ok: true as const, ports: [] };
  if (!ports.ok) return { refusal: textRefusal(400, ports.reason) };
  const running = node.findPod(route.namespace, route.pod);
  if (running === undefined) return { refusal: textRefusal(404, "pod does not exist") };
  if (route.uid !== undefined && route.uid !== running.pod.uid) {
    return { refusal: textRefusal(404, "pod not found") };
  }
  if (!asksForUpgrade(request)) return { refusal: httpError(500, "Upgrade request required") };

  const { pod } = running;
  const targetOf = (port: number): ForwardTarget => ({
    port,
    realPort: pod.ports.get(port),
    sandboxId: pod.uid,
  });
  if (isLegacy) return decideLegacyPortForward(request, ports.ports.map(targetOf), node);
  const spdyHeaders =
    tunnel === undefined
      ? request.rawHeaders
      : ["Connection", "Upgrade", "Upgrade", "SPDY/3.1", "X-Stream-Protocol-Version", tunnel];
  const spdy = checkSpdyHandshake(spdyHeaders, { accepted: [PORT_FORWARD_PROTOCOL], isSaidTwice: false });
  if (!spdy.ok) return { refusal: spdy.refusal };
  if (tunnel === undefined) {
    return {
      serve: (socket, head) => {
        socket.write(spdy.switching);
        new SpdyPortForward(socket, head, targetOf, node);
      },
    };
  }
  const handshake = checkTunnelHandshake(
    { method: request.method ?? "", rawHeaders: request.rawHeaders },
    tunnelSubprotocolOf(spdy.protocol),
  );
  if (!handshake.ok) return { refusal: handshake.refusal };
  return {
    serve: (socket, head) => {
      socket.write(handshake.switching);
      new SpdyPortForward(new TunnelSocket(socket, head, node), NOTHING, targetOf, node);
    },
  };
}

/** A kubelet knows only the shipped name, not the KEP's. */
function tunnelOffer(request: Request): string | undefined {
  const offers = tunnelOffers(offeredSubprotocols(request.rawHeaders));
  return offers.find(({ subprotocol, spdyProtocol }) => subprotocol === tunnelSubprotocolOf(spdyProtocol))
    ?.spdyProtocol;
}

function decideLegacyPortForward(
  request: Request,
  targets: readonly ForwardTarget[],
  node: ServingNode,
): Decision {
  const handshake = checkWebSocketHandshake(
    { method: request.method ?? "", rawHeaders: request.rawHeaders },
    ["", ...LEGACY_SUBPROTOCOLS],
  );
  if (!handshake.ok) return { refusal: handshake.refusal };
  const { subprotocol, switching } = handshake;
  return {
    serve: (socket, head) => {
      socket.write(switching);
      new LegacyPortForward(socket, head, targets, subprotocol.includes("base64"), node);
    },
  };
}

/** Whether the request offers a protocol that KEP-4006 added. */
function offersNewProtocol(request: Request): boolean {
  if (!isWebSocketUpgrade(request.rawHeaders)) return false;
  return (
    offeredSubprotocols(request.rawHeaders).includes(TRANSLATED_VERSION) || tunnelOffer(request) !== undefined
  );
}

function asksForUpgrade({ rawHeaders }: Request): boolean {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== "connection") continue;
    if (rawHeaders[at + 1]?.toLowerCase().includes("upgrade")) return true;
  }
  return false;
}

/** Only "1" is true. With a terminal, stderr is silently dropped. */
function parseRequestedStreams(query: URLSearchParams): RequestedStreams {
  const isSet = (name: string): boolean => query.get(name) === "1";
  const tty = isSet("tty");
  return { stdin: isSet("input"), stdout: isSet("output"), stderr: isSet("error") && !tty, tty };
}
