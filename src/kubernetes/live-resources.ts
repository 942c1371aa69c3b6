import type { ObjectKind } from "../api/objects.ts";

/** The path of each kind's collection. */
const COLLECTIONS: Readonly<Record<ObjectKind, { readonly base: string; readonly plural: string }>> = {
  Pod: { base: "/api/v1", plural: "pods" },
  Node: { base: "/api/v1", plural: "nodes" },
  Namespace: { base: "/api/v1", plural: "namespaces" },
  Service: { base: "/api/v1", plural: "services" },
  Secret: { base: "/api/v1", plural: "secrets" },
  EndpointSlice: { base: "/apis/discovery.k8s.io/v1", plural: "endpointslices" },
  Lease: { base: "/apis/coordination.k8s.io/v1", plural: "leases" },
  Ingress: { base: "/apis/networking.k8s.io/v1", plural: "ingresses" },
  IngressClass: { base: "/apis/networking.k8s.io/v1", plural: "ingressclasses" },
  Role: { base: "/apis/rbac.authorization.k8s.io/v1", plural: "roles" },
  ClusterRole: { base: "/apis/rbac.authorization.k8s.io/v1", plural: "clusterroles" },
  RoleBinding: { base: "/apis/rbac.authorization.k8s.io/v1", plural: "rolebindings" },
  ClusterRoleBinding: { base: "/apis/rbac.authorization.k8s.io/v1", plural: "clusterrolebindings" },
};

/** Without a namespace: all namespaces, or a cluster-scoped kind. */
export function collectionPath(kind: ObjectKind, namespace = ""): string {
  const { base, plural } = COLLECTIONS[kind];
  return namespace === ""
    ? `${base}/${plural}`
    : `${base}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

export function objectPath(kind: ObjectKind, namespace: string, name: string): string {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
}

/** The API's resource name: `pods`. */
export function pluralOf(kind: ObjectKind): string {
  return COLLECTIONS[kind].plural;
}
