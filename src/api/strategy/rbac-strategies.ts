import {
  type ClusterRole,
  type ClusterRoleBinding,
  RBAC_API_VERSION,
  type Role,
  type RoleBinding,
} from "../rbac-objects.ts";
import { listOf, named, struct, text, textMap, texts } from "../validation/go-shapes.ts";
import { metadataShape } from "../validation/object-shapes.ts";
import {
  validateClusterRole,
  validateClusterRoleBinding,
  validateRole,
  validateRoleBinding,
} from "../validation/validate-rbac.ts";
import { plainStrategy } from "./strategy.ts";

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

const roleShape = struct("Role", { ...head, rules });

const clusterRoleShape = struct("ClusterRole", {
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

const roleBindingShape = struct("RoleBinding", binding, ["roleRef"]);

const clusterRoleBindingShape = struct("ClusterRoleBinding", binding, ["roleRef"]);

export const roleStrategy = plainStrategy<Role>({
  kind: "Role",
  apiVersion: RBAC_API_VERSION,
  resource: "roles",
  isNamespaced: true,
  shape: roleShape,
  validate: validateRole,
});

export const clusterRoleStrategy = plainStrategy<ClusterRole>({
  kind: "ClusterRole",
  apiVersion: RBAC_API_VERSION,
  resource: "clusterroles",
  isNamespaced: false,
  shape: clusterRoleShape,
  validate: validateClusterRole,
});

export const roleBindingStrategy = plainStrategy<RoleBinding>({
  kind: "RoleBinding",
  apiVersion: RBAC_API_VERSION,
  resource: "rolebindings",
  isNamespaced: true,
  shape: roleBindingShape,
  validate: validateRoleBinding,
});

export const clusterRoleBindingStrategy = plainStrategy<ClusterRoleBinding>({
  kind: "ClusterRoleBinding",
  apiVersion: RBAC_API_VERSION,
  resource: "clusterrolebindings",
  isNamespaced: false,
  shape: clusterRoleBindingShape,
  validate: validateClusterRoleBinding,
});
