import type { RequestedStreams } from "../../protocols/remotecommand/index.ts";
import { attachPath, execPath, type PodReference, portForwardPath, type Target } from "../client/index.ts";
import { kubeletCommandPath, kubeletPortForwardPath } from "../client/kubelet-paths.ts";

/** Whose paths and answers the endpoint has: it decides which transports have to be accepted. */
export type EndpointProfile = "api-server" | "kubelet" | "runtime";

export interface CommandSessionRequest {
  readonly kind: "exec" | "attach";
  /** Empty for attach. */
  readonly command: readonly string[];
  readonly streams: RequestedStreams;
  /** Instead of the endpoint's own. */
  readonly container?: string | undefined;
}

export interface ForwardSessionRequest {
  readonly kind: "port-forward";
  /** Only the legacy WebSocket protocol names its port in the query. */
  readonly legacyPort?: number | undefined;
}

export type SessionRequest = CommandSessionRequest | ForwardSessionRequest;

/** Where one session is opened. */
export interface SessionPlace {
  readonly target: Target;
  /** Below the target's own path. */
  readonly path: string;
}

/** What is tested: one container of one pod, behind one server. */
export interface Endpoint {
  /** As shown in reports; no credentials. */
  readonly name: string;
  readonly profile: EndpointProfile;
  /** Whose credentials are sent. */
  readonly target: Target;
  /** Called once for each session: a runtime's URLs work once. */
  placeOf(request: SessionRequest): SessionPlace | Promise<SessionPlace>;
  /** What a peer wrote, without the secrets that this endpoint was opened with. */
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

/** `container` is needed: a kubelet knows no default. */
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

/** The token of a streaming URL, wherever a server or a hop quotes it. */
const TOKEN_OF_URL = /\/(exec|attach|portforward)\/[\w-]+/g;

/** The streaming server of a container runtime, or a hop in front of it. `urlOf` has the runtime give a URL, of which only the path counts. */
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
