import type { UserInfo } from "../../access/authn/authenticator.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import {
  kubeletAttributes,
  requireCreateForUpgrade,
  requireNodePermission,
} from "./kubelet-authorization.ts";
import type { NodeContext } from "./node-context.ts";
import { textRefusal } from "./text-refusal.ts";

/**
 * Who asks, and may they: before anything else is looked at. `opensSession`: the synthetic `create` check applies. A kubelet knows no
 * impersonation. Throws refusals 401, 403 and 500 in the kubelet's words, and 503 when the audit log must have it and can not.
 */
export async function admitCaller(
  incoming: IncomingStreaming,
  opensSession: boolean,
  { gateway, nodeName, requiresCreateForUpgrades }: NodeContext,
): Promise<UserInfo> {
  const user = await gateway.authenticator.authenticate(incoming);
  if (user === undefined) throw textRefusal(401, "Unauthorized");
  if (incoming.notes !== undefined) incoming.notes.user = user.name;
  await incoming.trail?.received(user);
  const authorizer = incoming.trail?.watching(gateway.authorizer) ?? gateway.authorizer;
  const attributes = kubeletAttributes(user, nodeName, incoming.method, incoming.url.pathname);
  await requireNodePermission(authorizer, attributes);
  if (opensSession && requiresCreateForUpgrades) await requireCreateForUpgrade(authorizer, attributes);
  return user;
}
