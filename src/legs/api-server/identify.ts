import type { UserInfo } from "../../access/authn/authenticator.ts";
import { impersonate } from "../../access/authn/impersonation.ts";
import { unauthorized } from "../../api/status.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";

/**
 * For whom a request is: who sent it is authenticated and written down, and then, if asked for and allowed, somebody else.
 * Throws StatusError 401, 403 for an impersonation that is not allowed, 503 when the audit log must have it and can not.
 */
export async function identify(incoming: IncomingStreaming, gateway: GatewayContext): Promise<UserInfo> {
  const caller = await gateway.authenticator.authenticate(incoming);
  if (caller === undefined) throw unauthorized();
  if (incoming.notes !== undefined) incoming.notes.user = caller.name;
  await incoming.trail?.received(caller);
  const user = await impersonate(caller, incoming.headers, gateway.authorizer);
  if (incoming.notes !== undefined) incoming.notes.user = user.name;
  if (user !== caller) incoming.trail?.impersonating(user);
  return user;
}
