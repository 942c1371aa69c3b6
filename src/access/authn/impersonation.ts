import { goQuote } from "../../api/go-json.ts";
import { badRequest, forbidden, genericError, StatusError } from "../../api/status.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import { requirePermission } from "../authz/require-permission.ts";
import {
  ANONYMOUS_USER,
  AUTHENTICATED_GROUP,
  UNAUTHENTICATED_GROUP,
  type UserInfo,
} from "./authenticator.ts";
import { extraOf } from "./extra-headers.ts";
import { headerText } from "./header-text.ts";

type HeaderLines = readonly (readonly [string, string])[];

/** One thing that a caller wants to be; each needs the verb `impersonate` on its own. */
interface Wanted {
  readonly apiGroup: "" | "authentication.k8s.io";
  readonly resource: "users" | "serviceaccounts" | "groups" | "uids" | "userextras";
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

const SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:";
const EXTRA_PREFIX = "Impersonate-Extra-";
/** Each wanted thing is one question to the authorizer. */
const MAX_WANTED = 500;

/**
 * The user that the caller asks to be with Impersonate-User, -Group, -Uid and -Extra-*, or the caller itself. By kube-apiserver's
 * rules (endpoints/filters/impersonation.go): every part is authorised for the caller, none is taken when one is refused.
 * Throws StatusError 403, or 400 for parts of a user without a user, in the words of kube-apiserver 1.37.
 */
export async function impersonate(
  caller: UserInfo,
  headers: HeaderLines,
  authorizer: Authorizer,
): Promise<UserInfo> {
  const valuesOf = (wanted: string) =>
    headers.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => headerText(value));
  const name = valuesOf("impersonate-user")[0] ?? "";
  const groups = valuesOf("impersonate-group");
  const uid = valuesOf("impersonate-uid")[0] ?? "";
  const extra = extraOf(headers, [EXTRA_PREFIX]);
  const wanted = wantedParts(name, groups, uid, extra);
  if (wanted.length === 0) return caller;
  if (name === "") {
    throw badRequest(`requested ${goUserInfo(groups, uid, extra)} without impersonating a user name`);
  }
  if (wanted.length > MAX_WANTED) throw genericError(431, "too many impersonation headers");
  for (const part of wanted) await requireImpersonation(caller, part, authorizer);
  return { name, uid, groups: groupsOf(name, groups), extra };
}

/** A user without a name as Go's `%#v` prints it. */
function goUserInfo(
  groups: readonly string[],
  uid: string,
  extra: Readonly<Record<string, readonly string[]>>,
): string {
  const list = (values: readonly string[]): string =>
    values.length === 0 ? "[]string(nil)" : `[]string{${values.map(goQuote).join(", ")}}`;
  const keys = Object.keys(extra).sort();
  const entries = keys.map((key) => `${goQuote(key)}:${list(extra[key] ?? [])}`).join(", ");
  const map = keys.length === 0 ? "map[string][]string(nil)" : `map[string][]string{${entries}}`;
  return `&user.DefaultInfo{Name:"", UID:${goQuote(uid)}, Groups:${list(groups)}, Extra:${map}}`;
}

function wantedParts(
  name: string,
  groups: readonly string[],
  uid: string,
  extra: Readonly<Record<string, readonly string[]>>,
): Wanted[] {
  const account = serviceAccountOf(name);
  const none = { apiGroup: "", subresource: "", namespace: "" } as const;
  const identity = { ...none, apiGroup: "authentication.k8s.io" } as const;
  return [
    ...(name === ""
      ? []
      : [
          account === undefined
            ? { ...none, resource: "users" as const, name }
            : { ...none, resource: "serviceaccounts" as const, ...account },
        ]),
    ...groups.map((group) => ({ ...none, resource: "groups" as const, name: group })),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((value) => ({
        ...identity,
        resource: "userextras" as const,
        subresource: key,
        name: value,
      })),
    ),
    ...(uid === "" ? [] : [{ ...identity, resource: "uids" as const, name: uid }]),
  ];
}

/** An authorizer that fails allows nothing here either; kube-apiserver answers 403 for it too. */
async function requireImpersonation(user: UserInfo, part: Wanted, authorizer: Authorizer): Promise<void> {
  const apiVersion = "v1";
  try {
    await requirePermission(authorizer, {
      user,
      verb: "impersonate",
      isResourceRequest: true,
      path: "",
      apiVersion,
      ...part,
    });
  } catch (error) {
    if (error instanceof StatusError) throw error;
    throw forbidden(part.resource, part.name, "the permission could not be checked");
  }
}

/**
 * The groups named; for a service account without any, its own. A named user is in system:authenticated as well, and the
 * system:anonymous in system:unauthenticated, unless either of them was named.
 */
function groupsOf(name: string, named: readonly string[]): string[] {
  const account = serviceAccountOf(name);
  const groups =
    named.length > 0 || account === undefined
      ? [...named]
      : ["system:serviceaccounts", `system:serviceaccounts:${account.namespace}`];
  const isSaid = groups.includes(AUTHENTICATED_GROUP) || groups.includes(UNAUTHENTICATED_GROUP);
  if (isSaid) return groups;
  return [...groups, name === ANONYMOUS_USER ? UNAUTHENTICATED_GROUP : AUTHENTICATED_GROUP];
}

/** `system:serviceaccount:<namespace>:<name>`; anything else is a user of that name. */
function serviceAccountOf(user: string): { namespace: string; name: string } | undefined {
  if (!user.startsWith(SERVICE_ACCOUNT_PREFIX)) return undefined;
  const [namespace, name, ...rest] = user.slice(SERVICE_ACCOUNT_PREFIX.length).split(":");
  const isName = (text: string | undefined) =>
    text !== undefined && /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(text);
  if (rest.length > 0 || !isName(namespace) || !isName(name)) return undefined;
  return { namespace: namespace as string, name: name as string };
}
