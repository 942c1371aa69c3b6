import {
  type ClusterRole,
  type ClusterRoleBinding,
  RBAC_API_VERSION,
  type Role,
  type RoleBinding,
} from "../rbac-objects.ts";
import {
  clusterRoleBindingShape,
  clusterRoleShape,
  roleBindingShape,
  roleShape,
} from "../validation/rbac-shapes.ts";
import {
  validateClusterRole,
  validateClusterRoleBinding,
  validateRole,
  validateRoleBinding,
} from "../validation/validate-rbac.ts";
import { plainStrategy } from "./plain-strategy.ts";

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
