import type { ClientOffer } from "../../sessions/client-offer.ts";
import { type Plan, planForWebSocketOnly } from "../../sessions/plan.ts";
import type { Subresource } from "../../sessions/streaming-request.ts";

/**
 * How a session travels to the API server: as WebSocket v5 or the tunnel, whatever the client speaks. `refusesWebSocket`: it was seen to
 * speak neither. Pure.
 */
export function planForApiServer(
  subresource: Subresource,
  offer: ClientOffer,
  refusesWebSocket: boolean,
): Plan {
  const plan = planForWebSocketOnly(subresource, offer);
  return (refusesWebSocket ? planAfterRefusal(plan) : undefined) ?? plan;
}

/** What is left when the API server refuses a bridge's WebSocket; undefined where the client's own protocol was asked for already. */
export function planAfterRefusal(plan: Plan): Plan | undefined {
  if (plan.kind !== "bridge") return undefined;
  return { kind: "pass-through", reason: "upstream-refused-websocket" };
}
