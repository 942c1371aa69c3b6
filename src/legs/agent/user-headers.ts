import { withoutIdentity } from "../../access/authn/identity-headers.ts";
import { REASON_HEADER } from "../../access/policy/require-policy.ts";
import {
  type HeaderLine,
  type HeaderList,
  headerValue,
  withHeader,
  withoutHeaders,
} from "../../http/header-list.ts";

/** The agent is the user's own client, not a hop that an API server would want to know of. */
const HOP_HEADERS = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
];

/**
 * The request's lines with the user's credentials in place of the agent's token. The client's
 * impersonation (`--as`) overrides the kubeconfig's. Hop-by-hop lines must be gone.
 */
export function inUsersName(
  headers: HeaderList,
  { credentials, authority }: { readonly credentials: HeaderList; readonly authority: string },
): HeaderLine[] {
  const impersonated = headers.filter(isImpersonation);
  const own = impersonated.length === 0 ? credentials : credentials.filter((line) => !isImpersonation(line));
  const kept = withoutHeaders(withoutIdentity(headers), HOP_HEADERS);
  return [...withHeader(kept, "Host", authority), ...impersonated, ...own];
}

/** What a gateway keeps to itself and the agent must not: an API server may be a gateway that asks for it. */
export function reasonLines(headers: HeaderList): HeaderLine[] {
  const reason = headerValue(headers, REASON_HEADER);
  return reason === undefined ? [] : [[REASON_HEADER, reason]];
}

function isImpersonation([name]: HeaderLine): boolean {
  return name.toLowerCase().startsWith("impersonate-");
}
