import { listOf, named, struct, text, textMap, texts } from "./go-shapes.ts";
import { metadataShape } from "./object-shapes.ts";

/** RBAC objects, with their types from k8s.io/api/rbac/v1. */
const rules = listOf(
  struct(
    "PolicyRule",
    {
      verbs: texts,
      apiGroups: texts,
      resources: texts,
      resourceNames: texts,
      nonResourceURLs: texts,
    },
    ["verbs"],
  ),
);
const head = { apiVersion: text, kind: text, metadata: metadataShape };
const binding = {
  ...head,
  subjects: listOf(
    struct("Subject", { kind: text, apiGroup: text, name: text, namespace: text }, ["kind", "name"]),
  ),
  roleRef: struct("RoleRef", { apiGroup: text, kind: text, name: text }, ["kind", "name"]),
};

export const roleShape = struct("Role", { ...head, rules });
export const clusterRoleShape = struct("ClusterRole", {
  ...head,
  rules,
  aggregationRule: struct("AggregationRule", {
    clusterRoleSelectors: listOf(
      struct("LabelSelector", {
        matchLabels: textMap,
        matchExpressions: listOf(
          struct(
            "LabelSelectorRequirement",
            { key: text, operator: named("LabelSelectorOperator"), values: texts },
            ["key", "operator"],
          ),
        ),
      }),
    ),
  }),
});
export const roleBindingShape = struct("RoleBinding", binding, ["roleRef"]);
export const clusterRoleBindingShape = struct("ClusterRoleBinding", binding, ["roleRef"]);
