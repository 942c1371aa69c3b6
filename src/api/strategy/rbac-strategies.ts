import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type FieldError, invalidValue, notSupported, required } from "../field-errors.ts";
import {
  type ClusterRole,
  type ClusterRoleBinding,
  type LabelSelector,
  type PolicyRule,
  RBAC_API_VERSION,
  RBAC_GROUP,
  type Role,
  type RoleBinding,
  type Subject,
} from "../rbac-objects.ts";
import { pathSegmentProblems, subdomainProblems } from "../validation/name-rules.ts";
import { metadataShape } from "../validation/object-shapes.ts";
import { listOf, named, struct, text, textMap, texts } from "../validation/shape.ts";
import { selectorErrors } from "../validation/validate-label-selector.ts";
import { validateMetadata } from "../validation/validate-metadata.ts";
import { plainStrategy, type Strategy } from "./strategy.ts";

const nameProblems = pathSegmentProblems;

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

const roleStrategy = plainStrategy<Role>({
  kind: "Role",
  apiVersion: RBAC_API_VERSION,
  resource: "roles",
  isNamespaced: true,
  shape: roleShape,
  validate: validateRole,
});

const clusterRoleStrategy = plainStrategy<ClusterRole>({
  kind: "ClusterRole",
  apiVersion: RBAC_API_VERSION,
  resource: "clusterroles",
  isNamespaced: false,
  shape: clusterRoleShape,
  validate: validateClusterRole,
});

const roleBindingStrategy = plainStrategy<RoleBinding>({
  kind: "RoleBinding",
  apiVersion: RBAC_API_VERSION,
  resource: "rolebindings",
  isNamespaced: true,
  shape: roleBindingShape,
  validate: validateRoleBinding,
});

const clusterRoleBindingStrategy = plainStrategy<ClusterRoleBinding>({
  kind: "ClusterRoleBinding",
  apiVersion: RBAC_API_VERSION,
  resource: "clusterrolebindings",
  isNamespaced: false,
  shape: clusterRoleBindingShape,
  validate: validateClusterRoleBinding,
});

export const rbacStrategies: readonly Strategy[] = [
  roleStrategy,
  clusterRoleStrategy,
  roleBindingStrategy,
  clusterRoleBindingStrategy,
];

/**
 * Checks and messages of the API server's pkg/apis/rbac/validation. Defaults have set an absent
 * apiGroup.
 */
function validateRole({ metadata, rules = [] }: Role): FieldError[] {
  return [
    ...validateMetadata(metadata, { isNamespaced: true, nameProblems }),
    ...rules.flatMap((rule, index) => ruleErrors(rule ?? {}, true, ["rules", index])),
    ...rules.flatMap((rule, index) => missing(rule ?? {}, "verbs", ["rules", index])),
  ];
}

function validateClusterRole({ metadata, rules = [], aggregationRule }: ClusterRole): FieldError[] {
  const path = ["aggregationRule", "clusterRoleSelectors"];
  const selectors = aggregationRule?.clusterRoleSelectors ?? [];
  const isUnselective = aggregationRule !== undefined && selectors.length === 0;
  const sentence = "at least one clusterRoleSelector required if aggregationRule is non-nil";
  return [
    ...validateMetadata(metadata, { isNamespaced: false, nameProblems }),
    ...rules.flatMap((rule, index) => ruleErrors(rule ?? {}, false, ["rules", index])),
    ...(isUnselective ? [required(path, sentence)] : []),
    ...selectors.flatMap((selector, index) => roleSelectorErrors(selector ?? {}, [...path, index])),
    ...rules.flatMap((rule, index) => missing(rule ?? {}, "verbs", ["rules", index])),
  ];
}

function validateRoleBinding(binding: RoleBinding): FieldError[] {
  const { metadata, roleRef, subjects = [] } = binding;
  return [
    ...validateMetadata(metadata, { isNamespaced: true, nameProblems }),
    ...roleRefErrors(roleRef, ["Role", "ClusterRole"]),
    ...subjects.flatMap((subject, index) => subjectErrors(subject ?? {}, true, ["subjects", index])),
    ...missingNames(binding),
  ];
}

function validateClusterRoleBinding(binding: ClusterRoleBinding): FieldError[] {
  const { metadata, roleRef, subjects = [] } = binding;
  return [
    ...validateMetadata(metadata, { isNamespaced: false, nameProblems }),
    ...roleRefErrors(roleRef, ["ClusterRole"]),
    ...subjects.flatMap((subject, index) => subjectErrors(subject ?? {}, false, ["subjects", index])),
    ...missingNames(binding),
  ];
}

/** Kubernetes declares these checks on the types, and runs them last. */
function missingNames({ roleRef, subjects = [] }: RoleBinding | ClusterRoleBinding): FieldError[] {
  return [
    ...subjects.flatMap((subject, index) => missing(subject ?? {}, "name", ["subjects", index])),
    ...missing(roleRef ?? {}, "name", ["roleRef"]),
  ];
}

function missing<Name extends string>(
  value: Readonly<Partial<Record<Name, string | readonly string[]>>>,
  name: Name,
  path: FieldPath,
): FieldError[] {
  return (value[name] ?? "").length === 0 ? [required([...path, name])] : [];
}

/** The API server shows the parsed selector, which is nil for an invalid one. */
function roleSelectorErrors(selector: LabelSelector, path: FieldPath): FieldError[] {
  const errors = selectorErrors(selector, path);
  return errors.length === 0 ? [] : [...errors, invalidValue(path, null, "invalid label selector.")];
}

function ruleErrors(rule: Partial<PolicyRule>, isNamespaced: boolean, path: FieldPath): FieldError[] {
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  if (nonResourceURLs.length > 0) {
    const urlPath = [...path, "nonResourceURLs"];
    const isMixed = apiGroups.length + resources.length + resourceNames.length > 0;
    const sentences = [
      ...(isNamespaced ? ["namespaced rules cannot apply to non-resource URLs"] : []),
      ...(isMixed ? ["rules cannot apply to both regular resources and non-resource URLs"] : []),
    ];
    return sentences.map((sentence) => invalidValue(urlPath, nonResourceURLs, sentence));
  }
  return [
    ...(apiGroups.length === 0
      ? [required([...path, "apiGroups"], "resource rules must supply at least one api group")]
      : []),
    ...(resources.length === 0
      ? [required([...path, "resources"], "resource rules must supply at least one resource")]
      : []),
  ];
}

function roleRefErrors(
  roleRef: Partial<RoleBinding["roleRef"]> = {},
  kinds: readonly string[],
): FieldError[] {
  const { apiGroup = "", kind = "", name = "" } = roleRef;
  const isForeign = apiGroup !== "" && apiGroup !== RBAC_GROUP;
  return [
    ...(isForeign ? [notSupported(["roleRef", "apiGroup"], apiGroup, [RBAC_GROUP])] : []),
    ...(kinds.includes(kind) ? [] : [notSupported(["roleRef", "kind"], kind, kinds)]),
    ...nameProblems(name).map((problem) => invalidValue(["roleRef", "name"], name, problem)),
  ];
}

function subjectErrors(subject: Partial<Subject>, isNamespaced: boolean, path: FieldPath): FieldError[] {
  const { kind = "", name = "", apiGroup = "", namespace = "" } = subject;
  const errors: FieldError[] = [];
  switch (kind) {
    case "ServiceAccount":
      for (const problem of name === "" ? [] : subdomainProblems(name)) {
        errors.push(invalidValue([...path, "name"], name, problem));
      }
      if (apiGroup !== "") errors.push(notSupported([...path, "apiGroup"], apiGroup, [""]));
      if (!isNamespaced && namespace === "") errors.push(required([...path, "namespace"]));
      return errors;
    case "User":
    case "Group":
      if (apiGroup !== "" && apiGroup !== RBAC_GROUP) {
        errors.push(notSupported([...path, "apiGroup"], apiGroup, [RBAC_GROUP]));
      }
      return errors;
    default:
      return [...errors, notSupported([...path, "kind"], kind, ["ServiceAccount", "User", "Group"])];
  }
}
