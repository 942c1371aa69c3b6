import type { Attributes } from "../../src/access/authz/authorizer.ts";
import type { ClusterRole, PolicyRule, RbacObject, RoleBinding } from "../../src/api/rbac-objects.ts";

/**
 * RBAC written from the API's documentation, without an index, an order, or code shared with the
 * product: one function for each sentence of kubernetes.io/docs/reference/access-authn-authz/rbac.
 * Slow on purpose.
 */
export function naiveAllows(objects: readonly RbacObject[], request: Attributes): boolean {
  for (const object of objects) {
    if (object.kind !== "ClusterRoleBinding" && object.kind !== "RoleBinding") continue;
    if (object.kind === "RoleBinding" && object.metadata.namespace !== request.namespace) continue;
    if (object.kind === "RoleBinding" && request.namespace === "") continue;
    if (!namesUser(object as RoleBinding, request)) continue;
    for (const rule of rulesBehind(object as RoleBinding, objects)) if (covers(rule, request)) return true;
  }
  return false;
}

function namesUser(binding: RoleBinding, { user }: Attributes): boolean {
  for (const subject of binding.subjects ?? []) {
    if (subject.kind === "User" && user.name === subject.name) return true;
    if (subject.kind === "Group") for (const group of user.groups) if (group === subject.name) return true;
    if (subject.kind === "ServiceAccount") {
      const parts = user.name.split(":");
      const [system, word, namespace, name] = parts;
      const home = subject.namespace ?? binding.metadata.namespace;
      if (parts.length !== 4 || system !== "system" || word !== "serviceaccount") continue;
      if (home !== undefined && home !== "" && home === namespace && subject.name === name) return true;
    }
  }
  return false;
}

function rulesBehind(binding: RoleBinding, objects: readonly RbacObject[]): PolicyRule[] {
  const { kind, name } = binding.roleRef;
  const rules: PolicyRule[] = [];
  for (const object of objects) {
    if (object.kind !== kind || object.metadata.name !== name) continue;
    if (object.kind === "Role" && object.metadata.namespace !== binding.metadata.namespace) continue;
    if (object.kind === "Role") rules.push(...(object.rules ?? []));
    if (object.kind === "ClusterRole") rules.push(...aggregatedRules(object, objects, []));
  }
  return rules;
}

function aggregatedRules(
  role: ClusterRole,
  objects: readonly RbacObject[],
  path: readonly string[],
): PolicyRule[] {
  if (!role.aggregationRule) return [...(role.rules ?? [])];
  const rules: PolicyRule[] = [];
  for (const other of objects) {
    if (other.kind !== "ClusterRole" || [...path, role.metadata.name].includes(other.metadata.name)) continue;
    for (const { matchLabels = {}, matchExpressions = [] } of role.aggregationRule.clusterRoleSelectors ??
      []) {
      const labels = other.metadata.labels ?? {};
      let isChosen = true;
      for (const key of Object.keys(matchLabels)) if (labels[key] !== matchLabels[key]) isChosen = false;
      for (const { key, operator, values = [] } of matchExpressions) {
        const isThere = key in labels;
        const isListed = isThere && values.includes(labels[key] as string);
        if (operator === "In" && !isListed) isChosen = false;
        if (operator === "NotIn" && isListed) isChosen = false;
        if (operator === "Exists" && !isThere) isChosen = false;
        if (operator === "DoesNotExist" && isThere) isChosen = false;
      }
      if (isChosen) rules.push(...aggregatedRules(other, objects, [...path, role.metadata.name]));
    }
  }
  return rules;
}

function covers(rule: PolicyRule, request: Attributes): boolean {
  if (rule.verbs.indexOf("*") < 0 && rule.verbs.indexOf(request.verb) < 0) return false;
  if (!request.isResourceRequest) {
    for (const url of rule.nonResourceURLs ?? []) {
      const pattern = url
        .split("")
        .map((letter) => (letter === "*" ? "\\*" : /\w/.test(letter) ? letter : `\\${letter}`))
        .join("")
        .replace(/(\\\*)+$/, ".*");
      if (new RegExp(`^${pattern}$`, "s").test(request.path)) return true;
    }
    return false;
  }
  const groups = rule.apiGroups ?? [];
  if (groups.indexOf("*") < 0 && groups.indexOf(request.apiGroup) < 0) return false;
  const names = rule.resourceNames ?? [];
  if (names.length > 0 && names.indexOf(request.name) < 0) return false;
  for (const resource of rule.resources ?? []) {
    if (resource === "*") return true;
    const [before, after] = resource.split("/");
    if (request.subresource === "" && after === undefined && before === request.resource) return true;
    if (request.subresource === "" || after !== request.subresource) continue;
    if (before === "*" || before === request.resource) return true;
  }
  return false;
}
