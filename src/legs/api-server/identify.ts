import { traced } from "@sluice/client/internal/observability/trace";
import type { RequestUser } from "../../access/authn/impersonation.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { AccessContext } from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";

/**
 * Authenticates and audits a request's user, and impersonates if requested and allowed. Throws
 * StatusError 401, 403, or 503 if a required audit log cannot be written.
 */
export async function identify(incoming: IncomingStreaming, gateway: AccessContext): Promise<RequestUser> {
  const { headers, method, url, notes, trail } = incoming;
  const caller = await traced(incoming.trace, "authenticate", () =>
    gateway.authenticator.authenticate(incoming),
  );
  if (caller === undefined) throw WIRE_ERRORS.unauthenticated.streaming();
  if (notes !== undefined) notes.user = caller.name;
  await trail?.received(caller);
  const line = { method, path: url.pathname, query: url.searchParams };
  const impersonated = await gateway.impersonation.decide(caller, headers, (user) =>
    requestAttributes(user, line),
  );
  await incoming.admit?.(`user ${impersonated?.user.name ?? caller.name}`);
  if (impersonated === undefined) return caller;
  const { user } = impersonated;
  if (notes !== undefined) {
    notes.user = user.name;
    notes.requestedBy = caller.name;
  }
  trail?.impersonating(impersonated);
  // The session lives by the credentials that came with it.
  return { ...user, requestedBy: caller.name, expiresAtMs: caller.expiresAtMs };
}
