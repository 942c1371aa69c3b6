import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { Relay } from "./carriers/relay.ts";
import type { SessionRunContext } from "./context.ts";
import { SessionLifecycle, type SessionOwner } from "./lifecycle.ts";

/** The gateway's parts that a forwarded upgrade needs. */
export type ForwardingContext = Pick<SessionRunContext, "clock" | "sessions" | "timeouts" | "bandwidth">;

/** Carries a forwarded upgrade that is not an exec, attach or port-forward. `onLife`: called before it begins. */
export function carryForwarded(
  downstream: UpgradedConnection,
  upstream: UpgradedConnection,
  context: ForwardingContext,
  owner: SessionOwner,
  onLife: (life: SessionLifecycle) => void = () => {},
): void {
  const life = new SessionLifecycle(context, context.timeouts, owner);
  onLife(life);
  life.carry([downstream.socket, upstream.socket], () => new Relay(downstream, upstream, life));
}
