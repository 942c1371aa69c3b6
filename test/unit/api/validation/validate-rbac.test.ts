import { describe, expect, it } from "vitest";
import { readObject } from "../../../../src/api/strategy/read-object.ts";

const apiVersion = "rbac.authorization.k8s.io/v1";
const rule = { verbs: ["get"], apiGroups: [""], resources: ["pods"] };
const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" };
const bob = { kind: "User", name: "bob" };

function problemsOf(object: Record<string, unknown>): string[] {
  const reading = readObject({ apiVersion, metadata: { name: "x" }, ...object });
  const prefix = `${object.kind}.rbac.authorization.k8s.io "x" is invalid: `;
  return reading.isValid ? [] : reading.problems.map(({ message }) => message.replace(prefix, ""));
}

const clusterRole = (more: object) => ({ kind: "ClusterRole", ...more });
const roleBinding = (more: object) => ({ kind: "RoleBinding", roleRef, subjects: [bob], ...more });
const clusterRoleBinding = (more: object) => ({
  kind: "ClusterRoleBinding",
  roleRef: { kind: "ClusterRole", name: "r" },
  subjects: [bob],
  ...more,
});

/** After pkg/apis/rbac/validation/validation_test.go. */
describe("RBAC objects", () => {
  it.each([
    { kind: "Role", rules: [rule] },
    { kind: "Role" },
    clusterRole({ rules: [rule, { verbs: ["get"], nonResourceURLs: ["/x", "*"] }] }),
    clusterRole({ aggregationRule: { clusterRoleSelectors: [{ matchLabels: { "a/b": "c" } }] } }),
    clusterRole({ metadata: { name: "system:Public.info_viewer" } }),
    roleBinding({}),
    roleBinding({ subjects: null, roleRef: { kind: "ClusterRole", name: "r" } }),
    roleBinding({ subjects: [{ kind: "ServiceAccount", name: "robot" }] }),
    clusterRoleBinding({}),
    clusterRoleBinding({ subjects: [{ kind: "Group", name: "system:masters" }] }),
  ])("%j is valid", (object) => {
    expect(problemsOf(object)).toEqual([]);
  });

  it.each<[Record<string, unknown>, string[]]>([
    [
      { kind: "Role", rules: [{}] },
      [
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[0].resources: Required value: resource rules must supply at least one resource",
        "rules[0].verbs: Required value",
      ],
    ],
    [
      { kind: "Role", rules: [{ verbs: ["get"], nonResourceURLs: ["/x"] }] },
      ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
    ],
    [
      clusterRole({ rules: [{ ...rule, nonResourceURLs: ["/x"] }] }),
      [
        'rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs',
      ],
    ],
    [
      clusterRole({ aggregationRule: {} }),
      [
        "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil",
      ],
    ],
    [
      clusterRole({
        aggregationRule: {
          clusterRoleSelectors: [
            { matchExpressions: [{ key: "a", operator: "In" }] },
            { matchExpressions: [{ key: "a", operator: "Exists", values: ["b"] }] },
            { matchExpressions: [{ key: "a", operator: "Near", values: ["b"] }] },
          ],
        },
      }),
      [
        "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.",
        "aggregationRule.clusterRoleSelectors[1].matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        "aggregationRule.clusterRoleSelectors[1]: Invalid value: null: invalid label selector.",
        'aggregationRule.clusterRoleSelectors[2].matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator',
        "aggregationRule.clusterRoleSelectors[2]: Invalid value: null: invalid label selector.",
      ],
    ],
    [
      roleBinding({ roleRef: { apiGroup: "x", kind: "Rule", name: "" } }),
      [
        'roleRef.apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"',
        'roleRef.kind: Unsupported value: "Rule": supported values: "Role", "ClusterRole"',
        "roleRef.name: Required value",
      ],
    ],
    [
      roleBinding({ roleRef: undefined }),
      [
        'roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole"',
        "roleRef.name: Required value",
      ],
    ],
    [
      clusterRoleBinding({ roleRef: { kind: "Role", name: "a/b" } }),
      [
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        "roleRef.name: Invalid value: \"a/b\": may not contain '/'",
      ],
    ],
    [
      roleBinding({ subjects: [{ kind: "User" }, { kind: "Robot", name: "r" }, { ...bob, apiGroup: "x" }] }),
      [
        'subjects[1].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
        'subjects[2].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"',
        "subjects[0].name: Required value",
      ],
    ],
    [
      clusterRoleBinding({
        subjects: [
          { kind: "ServiceAccount", name: "robot" },
          { kind: "ServiceAccount", name: "robot", namespace: "ns", apiGroup: "rbac.authorization.k8s.io" },
        ],
      }),
      [
        "subjects[0].namespace: Required value",
        'subjects[1].apiGroup: Unsupported value: "rbac.authorization.k8s.io": supported values: ""',
      ],
    ],
    [
      { kind: "Role", rules: [{ verbs: "get" }] },
      [
        'Role in version "v1" cannot be handled as a Role: json: cannot unmarshal string into Go struct field PolicyRule.rules.verbs of type []string',
      ],
    ],
  ])("%j is refused", (object, problems) => {
    expect(problemsOf(object)).toEqual(problems);
  });

  it("v1beta1 is not taken for v1", () => {
    expect(problemsOf({ apiVersion: "rbac.authorization.k8s.io/v1beta1", kind: "Role" })).toEqual([
      expect.stringContaining('no matches for kind "Role" in version "rbac.authorization.k8s.io/v1beta1"'),
    ]);
  });
});
