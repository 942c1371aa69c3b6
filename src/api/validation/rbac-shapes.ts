import { metadataShape } from "./object-shapes.ts";
import type { Shape } from "./shape.ts";

/** The RBAC objects with their types in k8s.io/api/rbac/v1. */
const text: Shape = { json: "string", go: "string" };
const texts: Shape = { json: "array", go: "[]string", items: text };
const struct = (go: string, fields: Readonly<Record<string, Shape>>): Shape => ({
  json: "struct",
  go,
  fields,
});
const listOf = (go: string, fields: Readonly<Record<string, Shape>>): Shape => ({
  json: "array",
  go: `[]v1.${go}`,
  items: struct(go, fields),
});

const rules = listOf("PolicyRule", {
  verbs: texts,
  apiGroups: texts,
  resources: texts,
  resourceNames: texts,
  nonResourceURLs: texts,
});
const head = { apiVersion: text, kind: text, metadata: metadataShape };
const binding = {
  ...head,
  subjects: listOf("Subject", { kind: text, apiGroup: text, name: text, namespace: text }),
  roleRef: struct("RoleRef", { apiGroup: text, kind: text, name: text }),
};

export const roleShape = struct("Role", { ...head, rules });
export const clusterRoleShape = struct("ClusterRole", {
  ...head,
  rules,
  aggregationRule: struct("AggregationRule", {
    clusterRoleSelectors: listOf("LabelSelector", {
      matchLabels: { json: "map", go: "map[string]string", values: text },
      matchExpressions: listOf("LabelSelectorRequirement", {
        key: text,
        operator: { json: "string", go: "v1.LabelSelectorOperator" },
        values: texts,
      }),
    }),
  }),
});
export const roleBindingShape = struct("RoleBinding", binding);
export const clusterRoleBindingShape = struct("ClusterRoleBinding", binding);
