import { StatusError } from "../api/status.ts";
import { peekRefusal } from "../http/peek-refusal.ts";
import type { UpgradeResponse } from "../http/upgrade-request.ts";
import { applyPolicy } from "../legs/api-server/apply-policy.ts";
import { dialNode } from "../legs/api-server/dial-node.ts";
import { kubeletPath } from "../legs/api-server/kubelet-path.ts";
import type { PreparedStreaming } from "../legs/api-server/prepare-streaming.ts";
import { refusedPath } from "../nodes/refused-path.ts";
import { type ClientHandshake, checkClientHandshake, HandshakeRefusal } from "./client-handshake.ts";
import type { GatewayContext } from "./context.ts";
import { planAfter, webSocketPathOf } from "./plan.ts";
import { type UpstreamRequest, upstreamRequestFor } from "./upstream-request.ts";

/** What a node answered, and to which request: `prepared` has the plan that was taken in the end. */
export interface UpstreamHandshake {
  readonly prepared: PreparedStreaming;
  readonly handshake: ClientHandshake;
  readonly kubeletRequest: UpstreamRequest;
  readonly response: UpgradeResponse;
}

/** Refusals that matter here are a sentence. */
const PEEK = { maxBytes: 4 * 1024, timeoutMs: 1_000 };

/**
 * Asks the node for the session, by the next plan if it refuses the first because of its path. The client has not been answered, so
 * it notices nothing but the time.
 *
 * The second attempt is made only behind a whole refusal (400 or more). Whoever refuses has opened no streams, and no command runs
 * without streams, so the first attempt had no effect. Silence, a broken connection or a wrong 101 prove nothing of the kind: they are
 * remembered against the path, and the client is told (docs/node-capability.md).
 *
 * Throws what `checkClientHandshake` and `dialNode` throw.
 */
export async function negotiateUpgrade(
  prepared: PreparedStreaming,
  signal: AbortSignal,
  gateway: GatewayContext,
): Promise<UpstreamHandshake> {
  const first = await attempt(prepared, signal, gateway);
  if (first.response.kind !== "refused") return first;
  const { request, target, user } = prepared;
  const nextPlan = planAfter(prepared.plan, request.subresource);
  if (nextPlan === undefined) return first;

  const { text, refused } = await peekRefusal(first.response, PEEK);
  const asRefused = { ...first, response: refused };
  const cause = refusedPath(refused.status, text);
  if (cause === undefined) return asRefused;

  let second: UpstreamHandshake;
  try {
    const policy = applyPolicy(user, request, target, nextPlan, gateway);
    second = await attempt({ ...prepared, plan: nextPlan, policy }, signal, gateway);
  } catch (error) {
    // The client's own handshake is wrong, or the node is gone meanwhile: what the node said first is the better answer.
    if (!(error instanceof HandshakeRefusal) && !(error instanceof StatusError)) {
      refused.body.destroy();
      throw error;
    }
    return asRefused;
  }
  refused.body.destroy();
  // Where both plans are refused, it was not the path: nothing is held against it.
  if (second.response.kind === "switched") {
    gateway.nodes.recordFailure(target.node, webSocketPathOf(request.subresource), cause);
    gateway.metrics.nodes.fellBack(request.subresource, cause);
    gateway.metrics.upgradeFailed(request.subresource);
    gateway.logger.warn(
      { node: target.node.name, subresource: request.subresource, code: refused.status, cause },
      "the node refused the WebSocket path that it declares; the session goes on over SPDY",
    );
  }
  return second;
}

async function attempt(
  prepared: PreparedStreaming,
  signal: AbortSignal,
  gateway: GatewayContext,
): Promise<UpstreamHandshake> {
  const { request, target, plan } = prepared;
  const handshake = checkClientHandshake(prepared);
  // Legacy port-forward alone names its ports in the URL, and a bridge does not speak it to the node.
  const asked = plan.kind === "bridge" ? { ...request, ports: [] } : request;
  const kubeletRequest = upstreamRequestFor(request, kubeletPath(asked, target.container), plan);
  const response = await dialNode(prepared, kubeletRequest, signal, gateway);
  return { prepared, handshake, kubeletRequest, response };
}
