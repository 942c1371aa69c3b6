import type { Resumption } from "@sluice/protocols/resume";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { ResumptionContext, SessionRunContext } from "../context.ts";
import type { PendingClient } from "../pending-client.ts";
import { atSocket, type OwnerConnection } from "../resumable/owner-connection.ts";
import { attachToHeld, type ResumedRequest, webSocketKeyOf } from "./attach-to-held.ts";
import { proxyResume } from "./proxy-resume.ts";

/**
 * Resumes a session over this connection, for an authorized user. Proxies to the process that owns it.
 * Throws StatusError (`ResumableSessions.claim`, `proxyResume`) and HandshakeRefusal.
 */
export async function resumeSession(
  resumption: Resumption,
  user: UserInfo,
  incoming: ResumedRequest,
  client: PendingClient,
  gateway: ResumptionContext & Pick<SessionRunContext, "clock" | "limits" | "sessions" | "timeouts">,
): Promise<void> {
  const { resumable, peers, timeouts } = gateway;
  const place = resumable?.owner?.placeOf(resumption.session) ?? { at: "here" };
  if (resumable === undefined || place.at === "here") {
    return attachToHeld(resumption, user, incoming, client, gateway);
  }
  const key = webSocketKeyOf(incoming);
  const proxyTo = (owner: OwnerConnection): Promise<void> =>
    proxyResume(owner, { resumption, key, user }, incoming, client, { ...gateway, resumable });
  if (place.at === "sibling") return proxyTo(atSocket(place.socketPath, timeouts.upgradeResponseMs));
  if (place.at === "nowhere" || peers === undefined) throw resumable.unknown(user, incoming.url.pathname);
  const relay = peers.startRelay(place.replica);
  if (relay === undefined) throw WIRE_ERRORS["relays-out"].streaming();
  try {
    await proxyTo(relay);
  } catch (error) {
    relay.end();
    throw error;
  }
}
