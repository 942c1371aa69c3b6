import {
  type ClusterRole,
  type ClusterRoleBinding,
  type PolicyRule,
  RBAC_API_VERSION,
  RBAC_GROUP,
  type RbacObject,
} from "../../../api/rbac-objects.ts";
import { userFacingRoles } from "./user-facing-roles.ts";

const READ_ANYBODY = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

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
