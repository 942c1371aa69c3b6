import type { Extensible, ObjectMeta } from "./api-object.ts";

export const RBAC_GROUP = "rbac.authorization.k8s.io";
export const RBAC_API_VERSION = "rbac.authorization.k8s.io/v1";

interface RbacTyped extends Extensible {
  readonly apiVersion: typeof RBAC_API_VERSION;
  readonly metadata: ObjectMeta;
}

export interface PolicyRule extends Extensible {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

export interface Role extends RbacTyped {
  readonly kind: "Role";
  readonly rules?: readonly PolicyRule[];
}

export interface ClusterRole extends RbacTyped {
  readonly kind: "ClusterRole";
  readonly rules?: readonly PolicyRule[];
  /** Replaces the rules by those of the ClusterRoles that any selector matches. */
  readonly aggregationRule?: Extensible & { readonly clusterRoleSelectors?: readonly LabelSelector[] };
}

export interface LabelSelector extends Extensible {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly LabelRequirement[];
}

export interface LabelRequirement extends Extensible {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

interface RoleRef extends Extensible {
  /** Empty or absent means the RBAC group. */
  readonly apiGroup?: string;
  readonly kind: string;
  readonly name: string;
}

export interface Subject extends Extensible {
  readonly kind: string;
  readonly apiGroup?: string;
  readonly name: string;
  /** A ServiceAccount's namespace; in a RoleBinding it defaults to the binding's. */
  readonly namespace?: string;
}

export interface RoleBinding extends RbacTyped {
  readonly kind: "RoleBinding";
  readonly subjects?: readonly Subject[];
  readonly roleRef: RoleRef;
}

export interface ClusterRoleBinding extends RbacTyped {
  readonly kind: "ClusterRoleBinding";
  readonly subjects?: readonly Subject[];
  readonly roleRef: RoleRef;
}

export type RbacObject = Role | ClusterRole | RoleBinding | ClusterRoleBinding;
