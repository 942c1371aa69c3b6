import { withoutFrontProxy } from "../../access/authn/identity-headers.ts";
import { requestedOptions } from "../../listeners/audit-request.ts";
import { UpstreamError } from "../../net/upstream-error.ts";
import { checkClientHandshake } from "../../sessions/client-handshake.ts";
import { requireCarriableUpgrade } from "../../sessions/client-offer.ts";
import { countingRefusals } from "../../sessions/count-refusals.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { UpstreamHandshake } from "../../sessions/negotiate-upgrade.ts";
import type { PendingClient } from "../../sessions/pending-client.ts";
import { planForRuntime } from "../../sessions/plan.ts";
import { requestSession } from "../../sessions/request-session.ts";
import { resumptionIn } from "../../sessions/resumption/resumable-sessions.ts";
import { resumeSession } from "../../sessions/resumption/resume-session.ts";
import { runSession } from "../../sessions/run-session.ts";
import { dialingError } from "../../sessions/upstream-errors.ts";
import { upstreamRequestFor } from "../../sessions/upstream-request.ts";
import type { PreparedStreaming } from "../api-server/prepare-streaming.ts";
import { admitCaller } from "./admit-caller.ts";
import type { NodeContext } from "./node-context.ts";
import { containerNotFound, findRunningContainer, findSandbox } from "./node-pods.ts";
import { parseSessionRequest, type SessionPath, subresourceOf } from "./session-request.ts";
import { streamingRouteOf } from "./streaming-url.ts";
import { refusalOfRuntime, textRefusal } from "./text-refusal.ts";

/** A session that may go ahead, and the call that gives its streaming URL. */
interface PreparedSession {
  readonly prepared: PreparedStreaming;
  mintUrl(): Promise<string>;
}

/**
 * The whole life of a session on this node: decide, a place, a streaming URL from the runtime, its answer, the client's 101, the bytes. Any
 * step may refuse it by throwing a StatusError, which is answered as text.
 */
export async function serveSession(
  path: SessionPath,
  incoming: IncomingStreaming,
  client: PendingClient,
  node: NodeContext,
): Promise<void> {
  const resumption = resumptionIn(incoming.headers);
  if (resumption !== undefined) {
    const user = await admitCaller(incoming, true, node);
    return resumeSession(resumption, user, incoming, client, node.gateway);
  }
  const startedMs = node.gateway.clock.now();
  const session = await prepareSession(path, incoming, node);
  const ask = () => askRuntime(session, client.signal, node);
  // From here on the session's record logs how it goes.
  if (incoming.notes !== undefined) incoming.notes.isLogged = true;
  await runSession(
    { prepared: session.prepared, startedMs, trail: incoming.trail, ask },
    client,
    node.gateway,
  );
}

/** In the kubelet's order: who, may they, with which options, which pod and container; a refusal is counted. */
export function prepareSession(
  path: SessionPath,
  incoming: IncomingStreaming,
  node: NodeContext,
): Promise<PreparedSession> {
  const { namespace, pod } = path;
  const named = { namespace, pod, subresource: subresourceOf(path) };
  return countingRefusals(named, incoming, node.gateway, async () => {
    try {
      return await decide(path, incoming, node);
    } catch (error) {
      throw refusalOfRuntime(error);
    }
  });
}

async function decide(
  path: SessionPath,
  incoming: IncomingStreaming,
  node: NodeContext,
): Promise<PreparedSession> {
  const { gateway, runtime, nodeName } = node;
  const user = await admitCaller(incoming, true, node);
  if (incoming.method !== "GET" && incoming.method !== "POST")
    throw textRefusal(405, "405: Method Not Allowed");
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
  // The API server says 400 to the same mistake.
  if (request.offer.transport === "none") throw textRefusal(500, "Upgrade request required");
  requireCarriableUpgrade(request);
  const plan = planForRuntime(request.subresource, request.offer, {
    ExtendWebSocketsToKubelet: gateway.gates.isEnabled("ExtendWebSocketsToKubelet"),
  });
  const target = {
    namespace: request.namespace,
    pod: request.pod,
    container: request.container,
    // This node itself: its runtime says where to dial.
    node: { name: nodeName, host: "", port: 0, declaredFeatures: [], streaming: undefined, incarnation: "" },
  };
  // Policy knows users; who asks here is an API server.
  const policy = { rule: undefined, reason: "" };
  return { prepared: { user, request, target, plan, policy }, mintUrl };
}

/**
 * Asks the runtime for a URL and the server behind it for the session, once: the URL's token is consumed by the first request, refused or
 * not. Throws a StatusError, and UpstreamError "aborted" when the client left meanwhile.
 */
async function askRuntime(
  { prepared, mintUrl }: PreparedSession,
  signal: AbortSignal,
  { gateway, streamingTls, counters }: NodeContext,
): Promise<UpstreamHandshake> {
  const { request, plan } = prepared;
  try {
    const { endpoint, path } = streamingRouteOf(await mintUrl(), streamingTls);
    counters.urlObtained(request.subresource, plan);
    const handshake = checkClientHandshake(prepared);
    const kubeletRequest = upstreamRequestFor(request, path, plan);
    const response = await requestSession(endpoint, kubeletRequest, signal, gateway);
    return { prepared, handshake, kubeletRequest, response };
  } catch (error) {
    if (error instanceof UpstreamError && error.code !== "aborted") throw dialingError(error);
    throw refusalOfRuntime(error);
  }
}
