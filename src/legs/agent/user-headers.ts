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
 * A request's lines for the API server: the agent's token gone, the user's credentials in its place. Whom the client impersonates
 * (`kubectl --as`) stands above whom the kubeconfig does, as in kubectl. Hop-by-hop lines must be gone already.
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
