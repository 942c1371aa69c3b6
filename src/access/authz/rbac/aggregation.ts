import { matchesSelector } from "../../../api/label-match.ts";
import type { ClusterRole, PolicyRule } from "../../../api/rbac-objects.ts";

/**
 * A ClusterRole's own rules, or those that its aggregationRule selects, in name order as in
 * kube-controller-manager. In a cycle each role has the rules of all.
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
