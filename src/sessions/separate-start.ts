import { headerValue } from "@sluice/client/internal/http/header-list";
import type { SwitchedUpgrade, UpgradeResponse } from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { tunnelOffers } from "@sluice/protocols/portforward";
import type { SeparateForwardsOptions } from "./carriers/forwards/separate-forwards.ts";
import type { Admission } from "./leg.ts";

/** Opens the same session at its node once more. Rejects as `Leg.dial` does. */
export type DialAgain = (signal: AbortSignal) => Promise<UpgradeResponse>;

type Carries = Pick<SeparateForwardsOptions, "client" | "node">;

/**
 * How client and node carry SPDY in a port-forward whose connections may be separate. Undefined for
 * other sessions, and through the API server, which would admit and audit each connection.
 */
export function separableForward(
  { request, plan }: Pick<Admission, "request" | "plan">,
  protocol: string,
  response: SwitchedUpgrade,
): Carries | undefined {
  if (request.subresource !== "portforward" || plan.path === "api-server") return undefined;
  const isSpdy = request.offer.transport === "spdy";
  const agreed = plan.kind === "pass-through" ? protocolOf(response) : protocol;
  if (!isSpdy && plan.kind !== "tunnel" && tunnelOffers([agreed]).length === 0) return undefined;
  const client = isSpdy ? "spdy" : "messages";
  const node = plan.kind === "bridge" ? "messages" : plan.kind === "tunnel" ? "spdy" : client;
  return { client, node };
}

/** Dials another connection. The node must switch it to the first one's protocol. */
export async function dialLike(
  first: SwitchedUpgrade,
  dialAgain: DialAgain,
  signal: AbortSignal,
): Promise<UpgradedConnection> {
  const response = await dialAgain(signal);
  if (response.kind === "refused") {
    response.body.destroy();
    throw new Error(`the node answered ${response.status}`);
  }
  const { socket, head } = response;
  if (protocolOf(response) === protocolOf(first)) return { socket, head };
  socket.destroy();
  throw new Error("the node chose another protocol than for the first connection");
}

function protocolOf({ rawHeaders }: SwitchedUpgrade): string {
  const protocol =
    headerValue(rawHeaders, "sec-websocket-protocol") ?? headerValue(rawHeaders, "x-stream-protocol-version");
  return protocol?.trim() ?? "";
}

/**
 * Sluice's client and kubectl up to 1.20 print an error and continue. Others may end the whole
 * forward, as kubectl has done since.
 */
export function readsErrors(userAgent = ""): boolean {
  return /^(?:sluice(?![a-z-])|kubectl\/v1\.(?:1?\d|20)\.)/.test(userAgent);
}
