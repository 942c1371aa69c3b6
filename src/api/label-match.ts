import type { LabelRequirement, LabelSelector } from "./rbac-objects.ts";

type Labels = Readonly<Record<string, string>>;

/**
 * metav1.LabelSelector: all labels and expressions must match. An empty selector matches
 * everything.
 */
export function matchesSelector(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Labels,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labelOf(labels, key) === value) &&
    matchExpressions.every((requirement) => matchesRequirement(requirement, labels))
  );
}

/** An absent key satisfies NotIn and DoesNotExist. Validation refuses other operators. */
function matchesRequirement({ key, operator, values = [] }: LabelRequirement, labels: Labels): boolean {
  const value = labelOf(labels, key);
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

function labelOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

/** A selector as kube-apiserver prints it: sorted by keys. */
export function printedSelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): string {
  const labels = Object.entries(matchLabels).map(([key, value]) => ({ key, text: `${key}=${value}` }));
  const others = matchExpressions.map(({ key, operator, values = [] }) => {
    const list = `${operator.toLowerCase()} (${[...values].sort().join(",")})`;
    const text = operator === "Exists" ? key : operator === "DoesNotExist" ? `!${key}` : `${key} ${list}`;
    return { key, text };
  });
  const sorted = [...labels, ...others].sort((a, b) => (a.key < b.key ? -1 : 1));
  return sorted.map(({ text }) => text).join(",") || "<none>";
}
