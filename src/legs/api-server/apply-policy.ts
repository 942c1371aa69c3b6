import { tunnelOffers } from "../../../protocols/portforward/index.ts";
import type { UserInfo } from "../../access/authn/authenticator.ts";
import type { WantedSession } from "../../access/policy/evaluate-policy.ts";
import { type GrantedSession, requirePolicy } from "../../access/policy/require-policy.ts";
import type { StreamingTarget } from "../../cluster/locate.ts";
import type { SessionTimeouts } from "../../sessions/carriers/session.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import type { Plan } from "../../sessions/plan.ts";
import type { StreamingRequest } from "../../sessions/streaming-request.ts";

/** By which rule a session goes ahead, and the reason that its user gave. */
export interface AppliedPolicy extends GrantedSession {
  readonly reason: string;
}

/** Asks policy about a session whose pod, container and user are known. Throws StatusError 403 that names the rule. */
export function applyPolicy(
  user: UserInfo,
  request: StreamingRequest,
  target: StreamingTarget,
  plan: Plan,
  { policy, cluster }: Pick<GatewayContext, "policy" | "cluster">,
): AppliedPolicy {
  const { namespace, pod, subresource, command, streams, reason } = request;
  const wanted: WantedSession = {
    user: user.name,
    groups: user.groups,
    namespace,
    podLabels: cluster.getPod(namespace, pod)?.metadata.labels ?? {},
    container: target.container,
    subresource,
    command,
    tty: streams.tty,
    stdin: streams.stdin,
    ports: knownPorts(request),
    reason,
  };
  // SPDY is looked into as it passes by; SPDY in a WebSocket only where the WebSocket ends here.
  const canSeePorts = plan.kind === "tunnel" || request.offer.transport === "spdy";
  return { ...requirePolicy(policy?.rules ?? [], wanted, pod, canSeePorts), reason };
}

/** The times of a session under the rule that let it in. */
export function timesOf({ rule }: Pick<AppliedPolicy, "rule">, timeouts: SessionTimeouts): SessionTimeouts {
  const { idleTimeoutMs = Number.POSITIVE_INFINITY, maxDurationMs = timeouts.maxDurationMs } = rule ?? {};
  return {
    ...timeouts,
    idleMs: Math.min(timeouts.idleMs, idleTimeoutMs),
    maxDurationMs: maxDurationMs && Math.min(maxDurationMs, timeouts.maxDurationMs ?? maxDurationMs),
  };
}

/** Only the legacy WebSocket port-forward names its ports in the URL; SPDY, tunnelled or not, has them in stream headers. */
function knownPorts({ subresource, offer, ports }: StreamingRequest): readonly number[] | undefined {
  if (subresource !== "portforward") return [];
  if (offer.transport !== "websocket" || tunnelOffers(offer.protocols).length > 0) return undefined;
  return ports;
}
