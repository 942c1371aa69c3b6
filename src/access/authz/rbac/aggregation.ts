import { matchesSelector } from "../../../api/label-match.ts";
import type { ClusterRole, PolicyRule } from "../../../api/rbac-objects.ts";

/**
 * The rules of a ClusterRole: its own, or those of the ClusterRoles that its aggregationRule chooses, in order of their names. What
 * kube-controller-manager writes into the object is computed here, since files have no controller. A role never aggregates itself,
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
        if (seen.has(name) || !matchesSelector(selector, labels)) continue;
        seen.add(name);
        if (other.aggregationRule === undefined) other.rules?.forEach(add);
        else visit(other);
      }
    }
  };
  visit(role);
  return rules;
}
