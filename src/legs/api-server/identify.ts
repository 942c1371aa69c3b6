import type { UserInfo } from "../../access/authn/authenticator.ts";
import { impersonate } from "../../access/authn/impersonation.ts";
import { unauthorized } from "../../api/status.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";

/**
 * The user of a request: authenticated, audited and, if asked for and allowed, impersonating. Throws
 * StatusError 401, 403, or 503 where a required audit log cannot be written.
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
