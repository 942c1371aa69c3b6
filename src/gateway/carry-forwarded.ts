import type { Leg } from "../streaming/leg.ts";
import { Relay } from "../streaming/relay.ts";
import type { GatewayContext } from "./context.ts";

/** What a forwarded upgrade needs of the gateway. */
export type ForwardingContext = Pick<GatewayContext, "clock" | "sessions" | "timeouts" | "bandwidth">;

/** Carries a forwarded upgrade that is no exec, attach or port-forward of ours; `giveBack` is called when it is over. */
export function carryForwarded(
  downstream: Leg,
  answered: Leg,
  { clock, bandwidth, sessions, timeouts }: ForwardingContext,
  giveBack: () => void,
): void {
  let session: Relay | undefined;
  const onOver = (): void => {
    sessions.deleteUnlisted(session);
    giveBack();
  };
  session = new Relay(downstream, answered, { clock, bandwidth, timeouts, lingerTimes: timeouts, onOver });
  sessions.addUnlisted(session);
}
