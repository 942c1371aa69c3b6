import {
  type HeaderLine,
  type HeaderList,
  headerValue,
  withHeader,
  withoutHeaders,
} from "@sluice/client/internal/http/header-list";
import { withoutIdentity } from "../../access/authn/identity-headers.ts";
import { REASON_HEADER } from "../../access/policy/require-policy.ts";

/** The agent acts as the user's client, so it does not announce itself as a hop. */
const HOP_HEADERS = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
];

/**
 * Replaces the agent's token with the user's credentials. The client's impersonation (`--as`)
 * overrides the kubeconfig's. Hop-by-hop headers must be gone already.
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

/**
 * A gateway consumes these headers, but the agent must forward them: its API server may be a
 * gateway that requires a reason.
 */
export function reasonLines(headers: HeaderList): HeaderLine[] {
  const reason = headerValue(headers, REASON_HEADER);
  return reason === undefined ? [] : [[REASON_HEADER, reason]];
}

function isImpersonation([name]: HeaderLine): boolean {
  return name.toLowerCase().startsWith("impersonate-");
}
