// src/legs/kubelet: the kubelet's HTTP API over a container runtime

import type { UpgradeResponse } from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import type { UpstreamTls } from "@sluice/client/internal/net/tls";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { traced } from "@sluice/client/internal/observability/trace";
import { tunnelOffers } from "@sluice/protocols/portforward";
import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import { withoutFrontProxy } from "../../access/authn/identity-headers.ts";
import type { KubeletPath } from "../../api/kubelet-path.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { containerNotFound, findRunningContainer, findSandbox } from "../../cri/pods.ts";
import { parseStreamingUrl } from "../../cri/streaming-url.ts";
import { nonUtf8Parameter } from "../../http/request-url.ts";
import { requestedOptions } from "../../listeners/audit-request.ts";
import { type ClientOffer, clientOfferOf, requireCarriableUpgrade } from "../../sessions/client-offer.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { Admission } from "../../sessions/leg.ts";
import { planForRuntime } from "../../sessions/plan.ts";
import { requestSession } from "../../sessions/request-session.ts";
import { type ResumableLeg, resumableClient } from "../../sessions/resumption/run-resumable.ts";
import type { StreamingRequest } from "../../sessions/streaming-request.ts";
import { dialingError } from "../../sessions/upstream-errors.ts";
import { upstreamRequestFor } from "../../sessions/upstream-request.ts";
import { admitCaller, callerStanding, type NodeContext } from "./admit-caller.ts";
import { refusalOfRuntime } from "./text-refusal.ts";

/** A session with a container of this node, and the call that returns its streaming URL. */
interface KubeletAdmission extends Admission {
  mintUrl(): Promise<string>;
}

/**
 * A session with a pod of this node: admitted like in a kubelet, and requested from its container
 * runtime.
 */
export function kubeletLeg(path: SessionPath, node: NodeContext): ResumableLeg<KubeletAdmission> {
  const { namespace, pod } = path;
  return {
    path: { namespace, pod, subresource: subresourceOf(path) },
    admit: async (incoming) => {
      try {
        return await admit(path, incoming, node);
      } catch (error) {
        throw refusalOfRuntime(error);
      }
    },
    dial: (admission, signal) => dialRuntime(admission, signal, node),
    downstream: (admission, client) => resumableClient(client, admission, node.gateway.resumable),
    authorizeResumption: (incoming) => admitCaller(incoming, true, node),
  };
}

/** Checks in the kubelet's order: user, authorization, options, pod and container. */
async function admit(
  path: SessionPath,
  incoming: IncomingStreaming,
  node: NodeContext,
): Promise<KubeletAdmission> {
  const { gateway, runtime, nodeName } = node;
  const user = await admitCaller(incoming, true, node);
  if (incoming.method !== "GET" && incoming.method !== "POST")
    throw WIRE_ERRORS["method-not-allowed"].kubelet();
  const headers = withoutFrontProxy(incoming.headers, gateway.authenticator);
  const request = parseSessionRequest(path, { ...incoming, headers });
  incoming.trail?.requested(requestedOptions(request));
  const { command, streams, ports } = request;

  const otherUid = path.action === "portForward" ? undefined : containerNotFound(path.container);
  const sandbox = await findSandbox(runtime, path, otherUid);
  let mintUrl = () => runtime.portForwardUrl(sandbox.id, ports);
  if (path.action !== "portForward") {
    const { id } = await findRunningContainer(runtime, sandbox, path.container);
    mintUrl = () =>
      path.action === "exec" ? runtime.execUrl(id, command, streams) : runtime.attachUrl(id, streams);
  }
  // An API server would send 400 for this mistake.
  if (request.offer.transport === "none") throw WIRE_ERRORS["no-upgrade"].kubelet();
  requireCarriableUpgrade(request);
  const plan = planForRuntime(request.subresource, request.offer, {
    ExtendWebSocketsToKubelet: gateway.gates.isEnabled("ExtendWebSocketsToKubelet"),
  });
  // Policy concerns users; here the caller is an API server.
  return {
    user,
    request,
    node: nodeName,
    plan,
    policy: { rule: undefined, reason: "" },
    standing: callerStanding(user, incoming, node),
    mintUrl,
    trace: incoming.trace,
  };
}

/**
 * Requests a URL from the runtime, and the session from that URL, once: the first request consumes
 * the URL's token, even if it is refused.
 */
async function dialRuntime(
  { request, plan, mintUrl, trace }: KubeletAdmission,
  signal: AbortSignal,
  { gateway, streamingTls, counters }: NodeContext,
): Promise<UpgradeResponse> {
  try {
    const url = await traced(trace, "locate", mintUrl);
    const { endpoint, path } = streamingRouteOf(url, streamingTls);
    counters.urlObtained(request.subresource, plan);
    return await requestSession(endpoint, upstreamRequestFor(request, path, plan), gateway, {
      signal,
      trace,
    });
  } catch (error) {
    if (error instanceof UpstreamError && error.code !== "aborted") throw dialingError(error);
    throw refusalOfRuntime(error);
  }
}

/** The destination of a runtime's streaming URL. The path contains a single-use token and is never shown. */
interface StreamingRoute {
  readonly endpoint: UpstreamEndpoint;
  readonly path: string;
}

/** Throws StatusError 500 for an unusable URL. */
function streamingRouteOf(text: string, tls: UpstreamTls): StreamingRoute {
  const { protocol, hostname, port, pathname, search } = parseStreamingUrl(text);
  const isTls = protocol === "https:";
  return {
    endpoint: {
      host: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? (isTls ? 443 : 80) : Number(port),
      tls: isTls ? tls : undefined,
    },
    path: `${pathname}${search}`,
  };
}

/** A path that opens a session. */
interface SessionPath extends KubeletPath {
  readonly action: "exec" | "attach" | "portForward";
}

export function isSessionPath(path: KubeletPath): path is SessionPath {
  return path.action === "exec" || path.action === "attach" || path.action === "portForward";
}

function subresourceOf({ action }: SessionPath): StreamingRequest["subresource"] {
  return action === "portForward" ? "portforward" : action;
}

/** Parses the options like the kubelet. Throws a 400 refusal in its words. */
function parseSessionRequest(path: SessionPath, incoming: IncomingStreaming): StreamingRequest {
  const { method, url, headers, remoteAddress, isPeerTrusted = false } = incoming;
  const query = url.searchParams;
  requireUtf8(url);
  const offer = clientOfferOf(headers);
  const isPortForward = path.action === "portForward";
  return {
    subresource: subresourceOf(path),
    namespace: path.namespace,
    pod: path.pod,
    method,
    path: url.pathname,
    container: isPortForward ? undefined : path.container,
    command: path.action === "exec" ? query.getAll("command") : [],
    streams: isPortForward ? NO_STREAMS : streamsOf(query),
    ports: isPortForward ? portsOf(query, offer) : [],
    offer,
    reason: "",
    headers,
    remoteAddress,
    isPeerTrusted,
  };
}

/** The kubelet refuses such text, because its runtime client cannot send it. Throws a 500 refusal. */
export function requireUtf8(url: URL): void {
  if (nonUtf8Parameter(url) === undefined) return;
  throw WIRE_ERRORS["query-not-utf8"].kubelet();
}

const NO_STREAMS: RequestedStreams = { stdin: false, stdout: false, stderr: false, tty: false };

/**
 * Only "1" is true. A terminal merges stderr into stdout, and the runtime refuses a request for
 * both, so stderr is dropped.
 */
function streamsOf(query: URLSearchParams): RequestedStreams {
  const tty = query.get("tty") === "1";
  const streams = {
    tty,
    stdin: query.get("input") === "1",
    stdout: query.get("output") === "1",
    stderr: query.get("error") === "1" && !tty,
  };
  if (!streams.stdin && !streams.stdout && !streams.stderr) {
    throw WIRE_ERRORS["no-stream"].kubelet();
  }
  return streams;
}

/** Only the legacy WebSocket port-forward names its ports in the URL, and there they are required. */
function portsOf(query: URLSearchParams, offer: ClientOffer): readonly number[] {
  if (offer.transport !== "websocket" || tunnelOffers(offer.protocols).length > 0) return [];
  const values = query.getAll("port");
  if (values.length === 0) throw WIRE_ERRORS["port-missing"].kubelet();
  return values.flatMap((value) => {
    if (value === "") throw WIRE_ERRORS["port-empty"].kubelet();
    return value.split(",").map(parsePort);
  });
}

function parsePort(text: string): number {
  const quoted = JSON.stringify(text);
  const isNumber = /^\d+$/.test(text);
  const port = Number(text);
  if (!isNumber || port > 65_535) {
    const problem = isNumber ? "value out of range" : "invalid syntax";
    throw WIRE_ERRORS["port-invalid"].kubelet({ port: quoted, problem });
  }
  if (port === 0) throw WIRE_ERRORS["port-zero"].kubelet({ port: quoted });
  return port;
}
