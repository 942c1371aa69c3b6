import type { UpgradedConnection } from "../net/upgraded-connection.ts";
import { Relay } from "./carriers/relay.ts";
import type { GatewayContext } from "./context.ts";
import { SessionLifecycle } from "./lifecycle.ts";

/** What a forwarded upgrade needs of the gateway. */
export type ForwardingContext = Pick<GatewayContext, "clock" | "sessions" | "timeouts" | "bandwidth">;

/** Carries a forwarded upgrade that is no exec, attach or port-forward of ours; `onOver` is called when it is over. */
export function carryForwarded(
  downstream: UpgradedConnection,
  upstream: UpgradedConnection,
  context: ForwardingContext,
  onOver?: () => void,
): void {
  const life = new SessionLifecycle(context, context.timeouts, { onOver });
  life.carry([downstream.socket, upstream.socket], () => new Relay(downstream, upstream, life));
}
