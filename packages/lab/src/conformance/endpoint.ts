import type { DialRequest } from "@sluice/client";
import { attachPath, execPath, type PodReference, portForwardPath, type Target } from "@sluice/client";
import { kubeletCommandPath, kubeletPortForwardPath } from "@sluice/client/internal/pod-paths";
import type { RequestedStreams } from "@sluice/protocols/remotecommand";

/** Transports of command sessions. */
export const COMMAND_TRANSPORTS = ["websocket-v5", "websocket-v4", "spdy"] as const;
/** Older protocols of command sessions, which servers may refuse. */
export const LEGACY_TRANSPORTS = ["websocket-v1", "websocket-v4-base64"] as const;
/** Port-forward transports that carry any number of connections in one session. */
export const FORWARD_TRANSPORTS = ["tunnel", "spdy-forward"] as const;

export type CommandTransport = (typeof COMMAND_TRANSPORTS | typeof LEGACY_TRANSPORTS)[number];
export type ForwardTransport = (typeof FORWARD_TRANSPORTS)[number];
export type Transport = CommandTransport | ForwardTransport;

/** What a client offers for a transport; subprotocols are in order of preference. */
export const OFFERS: Readonly<Record<Transport, Pick<DialRequest, "transport" | "protocols">>> = {
  "websocket-v5": { transport: "websocket", protocols: ["v5.channel.k8s.io"] },
  "websocket-v4": { transport: "websocket", protocols: ["v4.channel.k8s.io"] },
  "websocket-v1": { transport: "websocket", protocols: ["channel.k8s.io"] },
  "websocket-v4-base64": { transport: "websocket", protocols: ["v4.base64.channel.k8s.io"] },
  spdy: { transport: "spdy", protocols: ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"] },
  tunnel: { transport: "websocket", protocols: ["SPDY/3.1+portforward.k8s.io"] },
  "spdy-forward": { transport: "spdy", protocols: ["portforward.k8s.io"] },
};

/** The kind of server. It decides which paths exist and which transports must be accepted. */
export type EndpointProfile = "api-server" | "kubelet" | "runtime";

export interface CommandSessionRequest {
  readonly kind: "exec" | "attach";
  /** Empty for attach. */
  readonly command: readonly string[];
  readonly streams: RequestedStreams;
  /** Replaces the endpoint's own container. */
  readonly container?: string | undefined;
}

interface ForwardSessionRequest {
  readonly kind: "port-forward";
  /** Only the legacy WebSocket protocol names its port in the query. */
  readonly legacyPort?: number | undefined;
}

export type SessionRequest = CommandSessionRequest | ForwardSessionRequest;

/** The target and path of one session. */
export interface SessionPlace {
  readonly target: Target;
  /** Path below the target's base path. */
  readonly path: string;
}

/** The subject of a run: one container of one pod, behind one server. */
export interface Endpoint {
  /** The name in reports, without credentials. */
  readonly name: string;
  readonly profile: EndpointProfile;
  /** The server, with the credentials to send. */
  readonly target: Target;
  /** Called once per session, because a runtime's URLs work once. */
  placeOf(request: SessionRequest): SessionPlace | Promise<SessionPlace>;
  /** Masks this endpoint's secrets in a peer's text. */
  readonly mask?: ((text: string) => string) | undefined;
}

export function apiServerEndpoint(target: Target, pod: PodReference): Endpoint {
  return {
    name: target.url.origin,
    profile: "api-server",
    target,
    placeOf: (request) => {
      if (request.kind === "port-forward") {
        const query = request.legacyPort === undefined ? "" : `?ports=${request.legacyPort}`;
        return { target, path: portForwardPath(pod) + query };
      }
      const reference = request.container === undefined ? pod : { ...pod, container: request.container };
      const path = request.kind === "exec" ? execPath(reference, request.command) : attachPath(reference);
      return { target, path: path(request.streams) };
    },
  };
}

/** `container` is required: a kubelet has no default. */
export function kubeletEndpoint(
  target: Target,
  pod: PodReference & { readonly container: string },
): Endpoint {
  return {
    name: target.url.origin,
    profile: "kubelet",
    target,
    placeOf: (request) => {
      if (request.kind === "port-forward")
        return { target, path: kubeletPortForwardPath(pod, request.legacyPort) };
      const container = request.container ?? pod.container;
      const path = kubeletCommandPath(request.kind, { ...pod, container }, request.command);
      return { target, path: path(request.streams) };
    },
  };
}

/** The token in a streaming URL, wherever a server or a hop quotes it. */
const TOKEN_OF_URL = /\/(exec|attach|portforward)\/[\w-]+/g;

/**
 * A container runtime's streaming server, or a hop in front of it. `urlOf` gets a URL from the
 * runtime; only its path is used.
 */
export function runtimeEndpoint(
  name: string,
  target: Target,
  urlOf: (request: SessionRequest) => Promise<URL>,
): Endpoint {
  return {
    name,
    profile: "runtime",
    target,
    placeOf: async (request) => {
      const { pathname, search } = await urlOf(request);
      return { target, path: pathname + search };
    },
    mask: (text) => text.replace(TOKEN_OF_URL, "/$1/..."),
  };
}
