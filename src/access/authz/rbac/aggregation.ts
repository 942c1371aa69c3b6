import type { ClusterRole, LabelRequirement, LabelSelector, PolicyRule } from "../../../api/rbac-objects.ts";

type Labels = Readonly<Record<string, string>>;

/**
 * The rules of a ClusterRole: its own, or those of the ClusterRoles that its aggregationRule chooses, in order of their names. What
 * kube-controller-manager writes into the object is worked out here, since nobody writes into files. A role never aggregates itself,
 * and an aggregated one gives its own aggregate: a circle gives each of its roles the rules of all.
 */
export function rulesOfClusterRole(role: ClusterRole, all: readonly ClusterRole[]): readonly PolicyRule[] {
  if (role.aggregationRule === undefined) return role.rules ?? [];
  const rules: PolicyRule[] = [];
  const known = new Set<string>();
  const add = (rule: PolicyRule): void => {
    const key = JSON.stringify(rule);
    if (!known.has(key)) rules.push(rule);
    known.add(key);
  };
  const seen = new Set([role.metadata.name]);
  const visit = ({ aggregationRule }: ClusterRole): void => {
    const selectors = aggregationRule?.clusterRoleSelectors ?? [];
    for (const selector of selectors) {
      for (const other of all) {
        const { name, labels = {} } = other.metadata;
        if (seen.has(name) || !selects(selector, labels)) continue;
        seen.add(name);
        if (other.aggregationRule === undefined) other.rules?.forEach(add);
        else visit(other);
      }
    }
  };
  visit(role);
  return rules;
}

/** metav1.LabelSelector: all labels and all expressions. An empty selector chooses everything. */
export function selects({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(
      ([key, value]) => Object.hasOwn(labels, key) && labels[key] === value,
    ) && matchExpressions.every((requirement) => isMet(requirement, labels))
  );
}

/** An absent key satisfies NotIn and DoesNotExist. Validation lets no other operator through. */
function isMet({ key, operator, values = [] }: LabelRequirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      return false;
  }
}
