import { labelProblems, subdomainProblems } from "../../api/validation/name-rules.ts";
import type { UserInfo } from "../user-info.ts";
import { ANONYMOUS_USER, AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP } from "./authenticator.ts";

const SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:";
const NODE_PREFIX = "system:node:";
const NODES_GROUP = "system:nodes";

interface ServiceAccountName {
  readonly namespace: string;
  readonly name: string;
}

/** Parses `system:serviceaccount:<namespace>:<name>`; undefined for any other user name. */
export function serviceAccountOf(user: string): ServiceAccountName | undefined {
  if (!user.startsWith(SERVICE_ACCOUNT_PREFIX)) return undefined;
  const [namespace = "", name = "", ...rest] = user.slice(SERVICE_ACCOUNT_PREFIX.length).split(":");
  if (rest.length > 0 || labelProblems(namespace).length > 0 || subdomainProblems(name).length > 0)
    return undefined;
  return { namespace, name };
}

/** The node in `system:node:<name>`. */
export function nodeOf(user: string): string | undefined {
  if (!user.startsWith(NODE_PREFIX)) return undefined;
  const name = user.slice(NODE_PREFIX.length);
  return subdomainProblems(name).length > 0 ? undefined : name;
}

/** The groups of every service account or node with this name; none for other users. */
export function fixedGroupsOf(user: string): string[] {
  const account = serviceAccountOf(user);
  if (account !== undefined) return ["system:serviceaccounts", `system:serviceaccounts:${account.namespace}`];
  return nodeOf(user) === undefined ? [] : [NODES_GROUP];
}

/**
 * A named user also belongs to system:authenticated, unless it is in system:unauthenticated, as
 * system:anonymous always is.
 */
export function withSystemGroup({ name, groups }: Pick<UserInfo, "name" | "groups">): string[] {
  const isUnauthenticated = name === ANONYMOUS_USER || groups.includes(UNAUTHENTICATED_GROUP);
  const group = isUnauthenticated ? UNAUTHENTICATED_GROUP : AUTHENTICATED_GROUP;
  return groups.includes(group) ? [...groups] : [...groups, group];
}
