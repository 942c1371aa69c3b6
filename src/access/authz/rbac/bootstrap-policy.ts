import {
  type ClusterRole,
  type ClusterRoleBinding,
  type PolicyRule,
  RBAC_API_VERSION,
  RBAC_GROUP,
  type RbacObject,
} from "../../../api/rbac-objects.ts";

const READ_ANYBODY = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

const READ = ["get", "list", "watch"];

const WRITE = ["create", "delete", "deletecollection", "patch", "update"];

const AGGREGATE_TO = "rbac.authorization.k8s.io/aggregate-to-";

/** The actions on running pods that `edit` allows and `view` does not. */
const ACTING_ON_PODS = "pods/attach,pods/exec,pods/portforward,pods/proxy";

const SCALED =
  "daemonsets,deployments,deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale";

const SCALED_STATUS = "daemonsets/status,deployments/status,replicasets/status,statefulsets/status";

const viewRules = [
  rule(
    READ,
    "",
    "configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers",
    "replicationcontrollers/scale,serviceaccounts,services,services/status",
  ),
  rule(
    READ,
    "",
    "bindings,events,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status",
    "resourcequotas,resourcequotas/status",
  ),
  rule(READ, "", "namespaces"),
  rule(READ, "discovery.k8s.io", "endpointslices"),
  rule(READ, "apps", "controllerrevisions", SCALED, SCALED_STATUS),
  rule(READ, "autoscaling", "horizontalpodautoscalers,horizontalpodautoscalers/status"),
  rule(READ, "batch", "cronjobs,cronjobs/status,jobs,jobs/status"),
  rule(READ, "policy", "poddisruptionbudgets,poddisruptionbudgets/status"),
  rule(READ, "networking.k8s.io", "ingresses,ingresses/status,networkpolicies"),
];

const editRules = [
  rule(READ, "", ACTING_ON_PODS, "secrets,services/proxy"),
  rule(["impersonate"], "", "serviceaccounts"),
  rule(WRITE, "", "pods", ACTING_ON_PODS),
  rule(["create"], "", "pods/eviction"),
  rule(
    WRITE,
    "",
    "configmaps,events,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets",
    "serviceaccounts,services,services/proxy",
  ),
  rule(["create"], "", "serviceaccounts/token"),
  rule(WRITE, "apps", SCALED, "deployments/rollback"),
  rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
  rule(WRITE, "batch", "cronjobs,jobs"),
  rule(WRITE, "policy", "poddisruptionbudgets"),
  rule(WRITE, "networking.k8s.io", "ingresses,networkpolicies"),
  rule([...READ, ...WRITE], "coordination.k8s.io", "leases"),
];

const adminRules = [
  rule(["create"], "authorization.k8s.io", "localsubjectaccessreviews"),
  rule([...READ, ...WRITE], "rbac.authorization.k8s.io", "rolebindings,roles"),
];

/**
 * kube-apiserver's roles for people, without the group `extensions`. Each adds the rules of the
 * next lower role and of ClusterRoles labelled `rbac.authorization.k8s.io/aggregate-to-<role>:
 * "true"`.
 */
const userFacingRoles: readonly ClusterRole[] = [
  aggregated("admin", []),
  aggregated("edit", ["admin"]),
  aggregated("view", ["edit"]),
  part("admin", adminRules),
  part("edit", editRules),
  part("view", viewRules),
];

/**
 * kube-apiserver's default roles that clients need: health, version, discovery, self-reviews,
 * cluster-admin and the user-facing roles. A manifest with the same kind and name replaces a role.
 */
export const bootstrapPolicy: readonly RbacObject[] = [
  clusterRole("cluster-admin", [
    { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
    { verbs: ["*"], nonResourceURLs: ["*"] },
  ]),
  clusterRole("system:basic-user", [
    {
      verbs: ["create"],
      apiGroups: ["authorization.k8s.io"],
      resources: ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    { verbs: ["create"], apiGroups: ["authentication.k8s.io"], resources: ["selfsubjectreviews"] },
  ]),
  clusterRole("system:discovery", [
    {
      verbs: ["get"],
      nonResourceURLs: [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
      ],
    },
  ]),
  clusterRole("system:public-info-viewer", [{ verbs: ["get"], nonResourceURLs: READ_ANYBODY }]),
  ...userFacingRoles,
  clusterRoleBinding("cluster-admin", ["system:masters"]),
  clusterRoleBinding("system:basic-user", ["system:authenticated"]),
  clusterRoleBinding("system:discovery", ["system:authenticated"]),
  clusterRoleBinding("system:public-info-viewer", ["system:authenticated", "system:unauthenticated"]),
];

function metadataOf(name: string) {
  return { name, labels: { "kubernetes.io/bootstrapping": "rbac-defaults" } };
}

function clusterRole(name: string, rules: readonly PolicyRule[]): ClusterRole {
  return { apiVersion: RBAC_API_VERSION, kind: "ClusterRole", metadata: metadataOf(name), rules };
}

function clusterRoleBinding(name: string, groups: readonly string[]): ClusterRoleBinding {
  return {
    apiVersion: RBAC_API_VERSION,
    kind: "ClusterRoleBinding",
    metadata: metadataOf(name),
    roleRef: { apiGroup: RBAC_GROUP, kind: "ClusterRole", name },
    subjects: groups.map((group) => ({ apiGroup: RBAC_GROUP, kind: "Group", name: group })),
  };
}

function aggregated(name: string, into: readonly string[]): ClusterRole {
  const matchLabels = { [`${AGGREGATE_TO}${name}`]: "true" };
  return { ...named(name, into), aggregationRule: { clusterRoleSelectors: [{ matchLabels }] } };
}

function part(of: string, rules: readonly PolicyRule[]): ClusterRole {
  return { ...named(`system:aggregate-to-${of}`, [of]), rules };
}

function named(name: string, into: readonly string[]): Pick<ClusterRole, "apiVersion" | "kind" | "metadata"> {
  const aggregates = into.map((role) => [`${AGGREGATE_TO}${role}`, "true"] as const);
  const labels = { "kubernetes.io/bootstrapping": "rbac-defaults", ...Object.fromEntries(aggregates) };
  return { apiVersion: RBAC_API_VERSION, kind: "ClusterRole", metadata: { name, labels } };
}

/** `resources` are comma-separated lists. */
function rule(verbs: readonly string[], apiGroup: string, ...resources: readonly string[]): PolicyRule {
  return { verbs, apiGroups: [apiGroup], resources: resources.flatMap((list) => list.split(",")) };
}
