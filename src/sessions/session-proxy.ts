import type { Duplex } from "node:stream";
import { type HeaderList, headerValue } from "@sluice/client/internal/http/header-list";
import type { SwitchedUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { endOf, faultOf, type SessionEnd } from "@sluice/client/internal/sessions/session-end";
import { tunnelOffers } from "@sluice/protocols/portforward";
import type { RemoteCommandVersion } from "@sluice/protocols/remotecommand";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { Limits } from "../config/sections/limits.ts";
import { startBridge } from "./bridge-proxy.ts";
import { Relay } from "./carriers/relay.ts";
import { Translator } from "./carriers/translator.ts";
import { Tunnel, type TunnelOptions } from "./carriers/tunnel.ts";
import type { SessionRunContext } from "./context.ts";
import type { Admission } from "./leg.ts";
import type { SessionLifecycle } from "./lifecycle.ts";
import type { UpstreamHandshake } from "./negotiate-upgrade.ts";
import type { SessionObserver, SessionStream, Side } from "./observers/session-observer.ts";
import { SessionObservers } from "./observers/session-observers.ts";
import { isTunnel, passThroughOf } from "./relayed-session.ts";
import { type DialAgain, dialLike, readsErrors, separableForward } from "./separate-start.ts";
import type { StreamingSession } from "./session.ts";
import { offeredStreamProtocols } from "./upstream-request.ts";

/**
 * Refuses port-forward streams to ports that policy forbids. Added only to sessions whose policy has
 * port rules.
 */
export class PortRules implements SessionObserver {
  readonly isRequired = true;
  readonly #refusalOf: (port: number) => string | undefined;

  /** `refusalOf`: why a port may not be forwarded; undefined if it may. */
  constructor(refusalOf: (port: number) => string | undefined) {
    this.#refusalOf = refusalOf;
  }

  onStream({ port }: SessionStream): SessionEnd | undefined {
    if (port === undefined) return undefined;
    // The node might read anything but a plain number (NUL joins several values) as another port.
    const isPort = /^\d{1,5}$/.test(port);
    const message = isPort ? this.#refusalOf(Number(port)) : "the port is not a number";
    return message === undefined ? undefined : endOf("refused", message);
  }

  /** Without decoding, a port cannot be checked, so the session ends. */
  onUndecodable(side: Side, message: string): SessionEnd | undefined {
    return faultOf(side, "protocol-error", `the ${side} sent malformed SPDY: ${message}`);
  }
}

/** Both sides have switched protocols: answers the client's upgrade, then carries the bytes by the plan. */
interface SessionProxy {
  /** The headers of the client's 101. */
  readonly headers: HeaderList;
  readonly statusMessage?: string;
  readonly upstream: Duplex;
  readonly observers: SessionObservers;
  start(downstream: UpgradedConnection, life: SessionLifecycle): StreamingSession;
}

/** An upstream that switched protocols. */
type AgreedUpstream = UpstreamHandshake & { readonly response: SwitchedUpgrade };

interface ProxyParts extends AgreedUpstream {
  readonly upstream: UpgradedConnection;
  readonly observers: readonly SessionObserver[];
  readonly limits: Limits;
  readonly webSocketLimits: TunnelOptions["webSocketLimits"];
}

/** If the node chose something that cannot be carried, closes its connection and throws a StatusError. */
export function sessionProxyFor(
  agreed: AgreedUpstream,
  extra: readonly SessionObserver[],
  context: SessionRunContext,
  dialAgain: DialAgain,
): SessionProxy {
  const { limits } = context;
  const { socket, head } = agreed.response;
  const parts: ProxyParts = {
    ...agreed,
    upstream: { socket, head },
    observers: observersFor(agreed.admission, extra),
    limits,
    webSocketLimits: {
      maxFrameBytes: limits.maxWebSocketFrameBytes,
      maxMessageBytes: Number.POSITIVE_INFINITY,
      maxFragments: limits.maxWebSocketFragments,
    },
  };
  const proxy = carriedByPlan(parts);
  const start = separateForwards(parts, context, dialAgain);
  return start === undefined ? proxy : { ...proxy, observers: new SessionObservers(parts.observers), start };
}

function carriedByPlan(parts: ProxyParts): SessionProxy {
  switch (parts.admission.plan.kind) {
    case "pass-through":
      return passThrough(parts);
    case "translate":
      return translate(parts);
    case "bridge":
      return bridge(parts);
    case "tunnel":
      return tunnel(parts);
  }
}

/** Undefined: the forwarded connections share one connection to the node. */
function separateForwards(
  { admission, handshake, response, upstream, limits, webSocketLimits }: ProxyParts,
  { separateForwards: Carrier, logger }: SessionRunContext,
  dialAgain: DialAgain,
): SessionProxy["start"] | undefined {
  if (Carrier === undefined) return undefined;
  const sides = separableForward(admission, handshake.protocol, response);
  if (sides === undefined) return undefined;
  return (downstream, life) => {
    const options = {
      ...sides,
      limits: { webSocketLimits, spdyLimits: limits.spdy },
      maxQueuedBytes: limits.stalledPeerBufferBytes + limits.socketBufferBytes,
      dial: (signal: AbortSignal) => dialLike(response, dialAgain, signal),
      mayReadErrors: readsErrors(headerValue(admission.request.headers, "user-agent")),
      withheld: (port: number, error: string) =>
        logger.info({ session: { id: life.info?.id }, port, error }, "a forwarded connection failed"),
    };
    return new Carrier(downstream, upstream, options, life);
  };
}

function passThrough(parts: ProxyParts): SessionProxy {
  const { admission, response, upstream, observers, limits } = parts;
  const switched = {
    upstream: response.socket,
    headers: switchingHeaders(response.rawHeaders),
    statusMessage: response.statusMessage,
  };
  if (isTunnel(admission.request, response.rawHeaders)) {
    const start = tunnelTo("messages", parts);
    return { ...switched, observers: new SessionObservers(observers), start };
  }
  const { decoderFor, ...session } = passThroughOf(admission.request, response.rawHeaders, limits);
  return {
    ...switched,
    observers: new SessionObservers([session.ends, ...observers]),
    start: (downstream, life) =>
      new Relay(downstream, upstream, life, {
        decoder: decoderFor(life.observers),
        isTerminal: admission.request.streams.tty && admission.request.streams.stdout,
        ...session,
      }),
  };
}

function translate(parts: ProxyParts): SessionProxy {
  const { admission, handshake, response, upstream, observers, limits, webSocketLimits } = parts;
  const options = {
    requested: admission.request.streams,
    upstreamVersion: chosenStreamProtocol(response, admission) as RemoteCommandVersion,
    rewritesStatus: admission.plan.statusStyle === "kubelet",
    webSocketLimits,
    spdyLimits: limits.spdy,
    maxQueuedBytes: limits.stalledPeerBufferBytes,
    isAttach: admission.request.subresource === "attach",
  };
  return {
    upstream: response.socket,
    headers: handshake.switchTo("v5.channel.k8s.io"),
    observers: new SessionObservers(observers),
    start: (downstream, life) => new Translator(downstream, upstream, options, life),
  };
}

function bridge(parts: ProxyParts): SessionProxy {
  const { admission, handshake, response, upstream, observers, limits, webSocketLimits } = parts;
  const { protocol } = handshake;
  const bridged = { request: admission.request, protocol, webSocketLimits };
  return {
    upstream: response.socket,
    headers: handshake.switchTo(protocol),
    observers: new SessionObservers(observers),
    start: (downstream, life) => startBridge(bridged, downstream, upstream, life, limits),
  };
}

function tunnel(parts: ProxyParts): SessionProxy {
  const { admission, handshake, response, observers } = parts;
  const chosen = chosenStreamProtocol(response, admission);
  const { offer } = admission.request;
  const offers = offer.transport === "websocket" ? tunnelOffers(offer.protocols) : [];
  const subprotocol = offers.find(({ spdyProtocol }) => spdyProtocol === chosen)?.subprotocol;
  if (subprotocol === undefined) {
    response.socket.destroy();
    throw WIRE_ERRORS["tunnel-protocol"].streaming();
  }
  return {
    upstream: response.socket,
    headers: handshake.switchTo(subprotocol),
    observers: new SessionObservers(observers),
    start: tunnelTo("spdy", parts),
  };
}

function tunnelTo(
  node: TunnelOptions["node"],
  { upstream, webSocketLimits, limits }: ProxyParts,
): SessionProxy["start"] {
  const options = { client: "messages", node, webSocketLimits, spdyLimits: limits.spdy } as const;
  return (downstream, life) => new Tunnel(downstream, upstream, options, life);
}

/**
 * The observers of every session, on every carrier: add new ones here. `extra`: this session's own.
 */
function observersFor({ policy }: Admission, extra: readonly SessionObserver[]): SessionObserver[] {
  return [...(policy.portRefusal === undefined ? [] : [new PortRules(policy.portRefusal)]), ...extra];
}

/**
 * The SPDY protocol that the upstream chose. Throws a StatusError, worded as client-go's, if the
 * gateway did not offer it.
 */
function chosenStreamProtocol(response: SwitchedUpgrade, admission: Admission): string {
  const offered = offeredStreamProtocols(admission);
  const chosen = headerValue(response.rawHeaders, "x-stream-protocol-version")?.trim() ?? "";
  if (offered.includes(chosen)) return chosen;
  response.socket.destroy();
  throw WIRE_ERRORS["node-protocol"].streaming({
    offered: offered.join(" "),
    chosen: JSON.stringify(chosen),
  });
}

const SWITCHING_HEADERS: ReadonlySet<string> = new Set([
  "connection",
  "upgrade",
  "sec-websocket-accept",
  "sec-websocket-protocol",
  "x-stream-protocol-version",
]);

/**
 * Keeps only the headers of the node's 101 that the protocols need. A browser would attribute a node's
 * cookie or policy to the gateway.
 */
function switchingHeaders(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => SWITCHING_HEADERS.has(name.toLowerCase()));
}
