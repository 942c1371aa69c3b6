import { aggregateText, invalidValue } from "../../api/field-errors.ts";
import { labelProblems, subdomainProblems } from "../../api/validation/name-rules.ts";
import {
  type Attributes,
  type Authorizer,
  forbiddenTo,
  requirePermission,
  SUPERUSER_GROUP,
} from "../authz/authorizer.ts";
import type { UserInfo } from "../user-info.ts";
import { ANONYMOUS_USER, AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP } from "./authenticator.ts";

const SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:";

const NODE_PREFIX = "system:node:";

const NODES_GROUP = "system:nodes";

/** One way in which authorization may allow impersonation. */
export interface ImpersonationMode {
  /** The verb required for every part of the user. */
  readonly verb: string;
  readonly isConstrained: boolean;
  /** Whether this mode can apply to the user at all. */
  appliesTo(wanted: UserInfo, caller: UserInfo): boolean;
  /** The attributes to authorize in place of these. */
  asked(attributes: Attributes): Attributes;
}

/** KEP-5284's modes in kube-apiserver's order (endpoints/filters/impersonation/mode.go), legacy impersonation last. */
export const IMPERSONATION_MODES: readonly ImpersonationMode[] = [
  constrained("associated-node", isAssociatedNode, ofAnyAssociatedNode),
  constrained("arbitrary-node", (wanted) => isNameOnly(wanted) && nodeOf(wanted.name) !== undefined),
  constrained(
    "serviceaccount",
    (wanted) => isNameOnly(wanted) && serviceAccountOf(wanted.name) !== undefined,
  ),
  constrained("user-info", ({ name }) => nodeOf(name) === undefined && serviceAccountOf(name) === undefined),
  { verb: "impersonate", isConstrained: false, appliesTo: () => true, asked: (attributes) => attributes },
];

function constrained(
  name: string,
  appliesTo: ImpersonationMode["appliesTo"],
  asked: ImpersonationMode["asked"] = (attributes) => attributes,
): ImpersonationMode {
  return { verb: `impersonate:${name}`, isConstrained: true, appliesTo, asked };
}

/**
 * Only the name was given: callers cannot choose a node's or service account's uid, groups and
 * extra.
 */
function isNameOnly({ uid, groups, extra }: UserInfo): boolean {
  return uid === "" && groups.length === 0 && Object.keys(extra).length === 0;
}

/** A service account whose token is bound to the wanted node, or to a pod on it. */
function isAssociatedNode(wanted: UserInfo, caller: UserInfo): boolean {
  const node = nodeOf(wanted.name);
  const [own, ...others] = caller.extra["authentication.kubernetes.io/node-name"] ?? [];
  const isOwn = node !== undefined && own === node && others.length === 0;
  return isOwn && isNameOnly(wanted) && serviceAccountOf(caller.name) !== undefined;
}

/**
 * The node itself was already checked. So kube-apiserver authorizes all nodes, and leaves out the
 * values of the caller's extra.
 */
function ofAnyAssociatedNode(attributes: Attributes): Attributes {
  const { user, verb, name } = attributes;
  const extra = { "authentication.kubernetes.io/associated-node-keys": Object.keys(user.extra).sort() };
  return {
    ...attributes,
    user: { ...user, extra },
    name: verb === "impersonate:associated-node" ? "*" : name,
  };
}

const AUTHENTICATION_GROUP = "authentication.k8s.io";
/**
 * If there are at least this many groups or values, all of them are first authorized at once
 * (manyAuthorizationChecksInLoop).
 */
const MANY = 4;

/**
 * Throws StatusError 403 for the first part that the mode refuses. `request` is the caller's own
 * request.
 */
export async function requireMode(
  mode: ImpersonationMode,
  authorizer: Pick<Authorizer, "authorize">,
  wanted: UserInfo,
  request: Attributes,
): Promise<void> {
  const { verb, isConstrained } = mode;
  if (isConstrained) {
    const onRequest = verb.replace("impersonate:", "impersonate-on:");
    await requirePermission(authorizer, mode.asked({ ...request, verb: `${onRequest}:${request.verb}` }));
  }
  const group = isConstrained ? AUTHENTICATION_GROUP : "";
  const none = { isResourceRequest: true, path: "", apiVersion: "v1", namespace: "", subresource: "" };
  const of = (apiGroup: string, resource: string, name: string, subresource = ""): Attributes =>
    mode.asked({ ...none, user: request.user, verb, apiGroup, resource, name, subresource });
  const require = (attributes: Attributes): Promise<void> => requirePermission(authorizer, attributes);
  const mayDoAll = async (attributes: Attributes): Promise<boolean> =>
    isConstrained && (await authorizer.authorize(attributes)).decision === "allow";

  const [account, node] = [serviceAccountOf(wanted.name), nodeOf(wanted.name)];
  if (account !== undefined) {
    await require({ ...of(group, "serviceaccounts", account.name), namespace: account.namespace });
  } else if (isConstrained && node !== undefined) {
    await require(of(group, "nodes", node));
  } else {
    await require(of(group, "users", wanted.name));
  }
  if (wanted.uid !== "") await require(of(AUTHENTICATION_GROUP, "uids", wanted.uid));

  const { groups, extra } = wanted;
  const refusedGroup = isConstrained
    ? groups.find((name) => name === "" || name === SUPERUSER_GROUP)
    : undefined;
  if (refusedGroup !== undefined) {
    const what = refusedGroup === "" ? "empty string" : refusedGroup;
    throw forbiddenTo(of(group, "groups", refusedGroup), `impersonating the ${what} group is not allowed`);
  }
  const mayBeInAll = groups.length >= MANY && (await mayDoAll(of(group, "groups", "*")));
  for (const name of mayBeInAll ? [] : groups) await require(of(group, "groups", name));

  const problem = isConstrained ? extraProblem(extra) : undefined;
  if (problem !== undefined) throw forbiddenTo(of(AUTHENTICATION_GROUP, "userextras", ""), problem);
  const values = Object.entries(extra).flatMap(([key, all]) => all.map((value) => [key, value] as const));
  const mayHaveAll =
    values.length >= MANY && (await mayDoAll(of(AUTHENTICATION_GROUP, "userextras", "*", "*")));
  for (const [key, value] of mayHaveAll ? [] : values)
    await require(of(AUTHENTICATION_GROUP, "userextras", value, key));
}

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

/** The node's name in `system:node:<name>`. */
function nodeOf(user: string): string | undefined {
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

const PATH = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";

/**
 * Why constrained impersonation refuses the extra, in kube-apiserver's words (validateExtra of
 * impersonation/mode.go); undefined if it allows it.
 */
function extraProblem(extra: Readonly<Record<string, readonly string[]>>): string | undefined {
  for (const [key, values] of Object.entries(extra)) {
    if (key === "") return "impersonating the empty string key in extra is not allowed";
    const problem = keyProblem(key);
    if (problem !== undefined) return `impersonating an invalid key in extra is not allowed: ${problem}`;
    if (key !== key.toLowerCase())
      return `impersonating a non-lowercase key in extra is not allowed: ${JSON.stringify(key)}`;
    if (values.includes("")) return "impersonating the empty string value in extra is not allowed";
  }
  return undefined;
}

/** A key consists of a domain and a path: `acme.io/foo`. */
function keyProblem(key: string): string | undefined {
  const of = (value: string, detail: string) => invalidValue(["extra", "key"], value, detail);
  const [, domain = "", path = ""] = /^([^/]*)\/?(.*)$/s.exec(key) ?? [];
  if (domain === "" || path === "")
    return aggregateText([of(key, 'must be a domain-prefixed path (such as "acme.io/foo")')]);
  const isPath = new RegExp(`^${PATH}$`).test(path);
  const problems = [
    ...subdomainProblems(domain).map((detail) => of(domain, detail)),
    ...(isPath ? [] : [of(path, `Invalid path (regex used for validation is '${PATH}')`)]),
  ];
  return problems.length === 0 ? undefined : aggregateText(problems);
}
