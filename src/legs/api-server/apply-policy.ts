import { tunnelOffers } from "@sluice/protocols/portforward";
import type { WantedSession } from "../../access/policy/evaluate-policy.ts";
import { requirePolicy } from "../../access/policy/require-policy.ts";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { StreamingTarget } from "../../cluster/locate.ts";
import type { AppliedPolicy } from "../../sessions/admission.ts";
import type { ClusterContext, SessionRunContext } from "../../sessions/context.ts";
import type { Plan } from "../../sessions/plan.ts";
import type { StreamingRequest } from "../../sessions/streaming-request.ts";

/**
 * Applies policy once user, pod and container are known. Throws StatusError 403 that names the
 * rule, and 404 if the pod was deleted or replaced.
 */
export function applyPolicy(
  user: UserInfo,
  request: StreamingRequest,
  target: StreamingTarget,
  plan: Plan,
  { policy, cluster }: Pick<SessionRunContext, "policy"> & Pick<ClusterContext, "cluster">,
): AppliedPolicy {
  const { namespace, pod, subresource, command, streams, reason } = request;
  const known = cluster.getPod(namespace, pod);
  if (known === undefined || known.metadata.uid !== target.podUid)
    throw WIRE_ERRORS["pod-unknown"].streaming({ name: pod });
  const wanted: WantedSession = {
    user: user.name,
    groups: user.groups,
    namespace,
    podLabels: known.metadata.labels ?? {},
    container: target.container,
    subresource,
    command,
    tty: streams.tty,
    stdin: streams.stdin,
    ports: knownPorts(request),
    reason,
  };
  // Sluice reads SPDY as it passes, but SPDY in a WebSocket only if the WebSocket ends here.
  const canSeePorts = plan.kind === "tunnel" || request.offer.transport === "spdy";
  return { ...requirePolicy(policy?.rules ?? [], wanted, pod, canSeePorts), reason };
}

/**
 * Only the legacy WebSocket port-forward names its ports in the URL; SPDY, tunnelled or not, names
 * them in stream headers.
 */
function knownPorts({ subresource, offer, ports }: StreamingRequest): readonly number[] | undefined {
  if (subresource !== "portforward") return [];
  if (offer.transport !== "websocket" || tunnelOffers(offer.protocols).length > 0) return undefined;
  return ports;
}
