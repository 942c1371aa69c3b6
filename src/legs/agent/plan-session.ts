import type { ClientOffer } from "../../sessions/client-offer.ts";
import { makePlan, type Plan, planForWebSocketOnly } from "../../sessions/plan.ts";
import type { Subresource } from "../../sessions/streaming-request.ts";

/**
 * A session reaches the API server as WebSocket v5 or the tunnel, whatever the client speaks.
 * `refusesWebSocket`: the server has refused both before. Pure.
 */
export function planForApiServer(
  subresource: Subresource,
  offer: ClientOffer,
  refusesWebSocket: boolean,
): Plan {
  const plan = planForWebSocketOnly(subresource, offer);
  return (refusesWebSocket ? planAfterRefusal(plan) : undefined) ?? plan;
}

/**
 * The plan after the API server refused a bridge's WebSocket; undefined if the client's own
 * protocol was used already.
 */
export function planAfterRefusal(plan: Plan): Plan | undefined {
  if (plan.kind !== "bridge") return undefined;
  return makePlan("pass-through", "upstream-refused-websocket", { path: "api-server" });
}
