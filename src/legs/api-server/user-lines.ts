import type { HeaderLine, HeaderList } from "@sluice/client/internal/http/header-list";
import type { RequestUser } from "../../access/authn/impersonation.ts";
import { fixedGroupsOf, withSystemGroup } from "../../access/authn/impersonation-modes.ts";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { ApiServerUpstream } from "../../kubernetes/api-server-upstream.ts";
import { REQUESTED_BY_KEY } from "../../kubernetes/required-rules.ts";
import type { SessionRunContext } from "../../sessions/context.ts";

/**
 * The user as impersonation headers, plus our own credentials, for a request without the caller's
 * identity headers. Throws StatusError 503 without credentials.
 */
export async function impersonationLines(
  user: UserInfo,
  apiServer: ApiServerUpstream,
  gateway: Pick<SessionRunContext, "logger">,
): Promise<HeaderLine[]> {
  const own = await ownLines(apiServer.ownCredentials, gateway);
  return [...impersonationHeaders(user, apiServer), ...own];
}

/**
 * Authorization only: the kubeconfig's own impersonation would conflict with the caller's. Failures
 * are logged but not shown to the caller.
 */
async function ownLines(
  credentials: ApiServerUpstream["ownCredentials"],
  { logger }: Pick<SessionRunContext, "logger">,
): Promise<HeaderList> {
  try {
    const lines = (await credentials?.headers()) ?? [];
    return lines.filter(([name]) => name === "Authorization");
  } catch (error) {
    logger.error({ error }, "there are no credentials for the API server");
    throw WIRE_ERRORS["no-credentials"].forwarding();
  }
}

/**
 * Impersonation headers for a request's user. With constrained rights, service accounts and nodes
 * with exactly their kind's groups are sent by name alone (decision 43).
 */
export function impersonationHeaders(
  user: RequestUser,
  {
    isConstrained = false,
    namesRequester = false,
  }: Pick<ApiServerUpstream, "isConstrained" | "namesRequester">,
): HeaderLine[] {
  const lines: HeaderLine[] = [["Impersonate-User", user.name]];
  if (!isConstrained || !hasFixedGroups(user)) {
    if (user.uid !== "") lines.push(["Impersonate-Uid", user.uid]);
    for (const group of user.groups) lines.push(["Impersonate-Group", group]);
    const { [REQUESTED_BY_KEY]: earlier = [], ...extra } = user.extra;
    const requesters =
      namesRequester && user.requestedBy !== undefined ? [...earlier, user.requestedBy] : earlier;
    for (const [key, values] of Object.entries({ ...extra, [REQUESTED_BY_KEY]: requesters })) {
      for (const value of values) lines.push([`Impersonate-Extra-${escapedKey(key)}`, value]);
    }
  }
  // Header values are Latin-1: each UTF-8 byte becomes one character.
  return lines.map(([name, value]): HeaderLine => [name, Buffer.from(value).toString("latin1")]);
}

/** API servers lower-case the header's name before they decode it. Names must not contain brackets. */
function escapedKey(key: string): string {
  const escaped = (letter: string): string => `%${letter.charCodeAt(0).toString(16)}`;
  return key
    .split(/([A-Z()])/)
    .map((part, index) => (index % 2 === 1 ? escaped(part) : encodeURIComponent(part)))
    .join("");
}

function hasFixedGroups({ name, groups }: RequestUser): boolean {
  const fixed = fixedGroupsOf(name);
  if (fixed.length === 0) return false;
  const expected = withSystemGroup({ name, groups: fixed });
  return groups.length === expected.length && expected.every((group) => groups.includes(group));
}
