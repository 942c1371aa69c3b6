import type { Attributes } from "../../src/access/authz/authorizer.ts";
import type { UserInfo } from "../../src/access/user-info.ts";
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  Subject,
} from "../../src/api/rbac-objects.ts";

const apiVersion = "rbac.authorization.k8s.io/v1";

/** `get,list|apps|deployments,pods/exec|web` : verbs, API groups, resources, resource names. */
export function resourceRule(text: string): PolicyRule {
  const [verbs = "", apiGroups = "", resources = "", names = ""] = text.split("|");
  return {
    verbs: verbs.split(","),
    apiGroups: apiGroups.split(","),
    resources: resources.split(","),
    ...(names !== "" && { resourceNames: names.split(",") }),
  };
}

export function urlRule(verbs: string, urls: string): PolicyRule {
  return { verbs: verbs.split(","), nonResourceURLs: urls.split(",") };
}

export function role(namespace: string, name: string, ...rules: PolicyRule[]): Role {
  return { apiVersion, kind: "Role", metadata: { name, namespace }, rules };
}

export function clusterRole(name: string, ...rules: PolicyRule[]): ClusterRole {
  return { apiVersion, kind: "ClusterRole", metadata: { name }, rules };
}

/** `User:alice`, `Group:admins`, `ServiceAccount:namespace/name`, `ServiceAccount:name`. */
export function subject(text: string): Subject {
  const colon = text.indexOf(":");
  const [kind, name] = [text.slice(0, colon), text.slice(colon + 1)];
  if (kind !== "ServiceAccount") return { kind, name };
  const [first = "", second] = name.split("/");
  return second === undefined ? { kind, name: first } : { kind, namespace: first, name: second };
}

/** `roleRef` as `Role/name` or `ClusterRole/name`. */
export function roleBinding(
  namespace: string,
  name: string,
  roleRef: string,
  ...subjects: string[]
): RoleBinding {
  return {
    apiVersion,
    kind: "RoleBinding",
    metadata: { name, namespace },
    roleRef: roleRefOf(roleRef),
    subjects: subjects.map(subject),
  };
}

export function clusterRoleBinding(name: string, roleRef: string, ...subjects: string[]): ClusterRoleBinding {
  return {
    apiVersion,
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: roleRefOf(roleRef),
    subjects: subjects.map(subject),
  };
}

function roleRefOf(text: string) {
  const [kind = "", name = ""] = text.split("/");
  return { kind, name };
}

export function user(name: string, ...groups: string[]): UserInfo {
  return { name, uid: "", groups, extra: {} };
}

/** A request without user and resource, with these differences. */
export function asked(differences: Partial<Attributes>): Attributes {
  return {
    user: user("nobody"),
    verb: "get",
    isResourceRequest: true,
    namespace: "",
    apiGroup: "",
    apiVersion: "v1",
    resource: "pods",
    subresource: "",
    name: "",
    path: "",
    ...differences,
  };
}
