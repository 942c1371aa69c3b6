import type { UpgradedConnection } from "../net/upgraded-connection.ts";
import { beginContained } from "./carriers/contained-session.ts";
import { Relay } from "./carriers/relay.ts";
import type { StreamingSession } from "./carriers/session.ts";
import type { GatewayContext } from "./context.ts";

/** What a forwarded upgrade needs of the gateway. */
export type ForwardingContext = Pick<GatewayContext, "clock" | "sessions" | "timeouts" | "bandwidth">;

/** Carries a forwarded upgrade that is no exec, attach or port-forward of ours; `giveBack` is called when it is over. */
export function carryForwarded(
  downstream: UpgradedConnection,
  answered: UpgradedConnection,
  { clock, bandwidth, sessions, timeouts }: ForwardingContext,
  giveBack: () => void,
): void {
  let session: StreamingSession | undefined;
  let isOver = false;
  const onOver = (): void => {
    if (isOver) return;
    isOver = true;
    sessions.deleteUnlisted(session);
    giveBack();
  };
  const context = { clock, bandwidth, timeouts, lingerTimes: timeouts, onOver };
  const begin = (): StreamingSession => new Relay(downstream, answered, context);
  session = beginContained([downstream.socket, answered.socket], clock, begin, onOver);
  if (!isOver && session !== undefined) sessions.addUnlisted(session);
}
