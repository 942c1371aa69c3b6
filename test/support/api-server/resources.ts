/** One row for each resource; routing, discovery and storage read only these rows. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  readonly shortNames?: readonly string[];
  readonly hasStatus?: boolean;
}

const RBAC = { group: "rbac.authorization.k8s.io", version: "v1" };
const NETWORKING = { group: "networking.k8s.io", version: "v1" };
/**
 * Another version, read and written by conversion; it comes after the version in which objects are
 * stored.
 */
const NETWORKING_BETA = { group: "networking.k8s.io", version: "v1beta1" };
const ADMISSION = { group: "admissionregistration.k8s.io", version: "v1", isNamespaced: false };
const APPS = { group: "apps", version: "v1" };
const BATCH = { group: "batch", version: "v1" };
const CORE = { group: "", version: "v1" };

export const resources: readonly Resource[] = [
  {
    ...CORE,
    plural: "namespaces",
    kind: "Namespace",
    isNamespaced: false,
    shortNames: ["ns"],
    hasStatus: true,
  },
  { ...CORE, plural: "nodes", kind: "Node", isNamespaced: false, shortNames: ["no"], hasStatus: true },
  { ...CORE, plural: "pods", kind: "Pod", isNamespaced: true, shortNames: ["po"], hasStatus: true },
  { ...CORE, plural: "services", kind: "Service", isNamespaced: true, shortNames: ["svc"], hasStatus: true },
  { ...CORE, plural: "secrets", kind: "Secret", isNamespaced: true },
  { ...CORE, plural: "configmaps", kind: "ConfigMap", isNamespaced: true, shortNames: ["cm"] },
  { ...CORE, plural: "events", kind: "Event", isNamespaced: true, shortNames: ["ev"] },
  { ...CORE, plural: "serviceaccounts", kind: "ServiceAccount", isNamespaced: true, shortNames: ["sa"] },
  {
    group: "discovery.k8s.io",
    version: "v1",
    plural: "endpointslices",
    kind: "EndpointSlice",
    isNamespaced: true,
  },
  { group: "coordination.k8s.io", version: "v1", plural: "leases", kind: "Lease", isNamespaced: true },
  {
    ...NETWORKING,
    plural: "ingresses",
    kind: "Ingress",
    isNamespaced: true,
    shortNames: ["ing"],
    hasStatus: true,
  },
  { ...NETWORKING, plural: "ingressclasses", kind: "IngressClass", isNamespaced: false },
  {
    ...NETWORKING_BETA,
    plural: "ingresses",
    kind: "Ingress",
    isNamespaced: true,
    shortNames: ["ing"],
    hasStatus: true,
  },
  { ...NETWORKING_BETA, plural: "ingressclasses", kind: "IngressClass", isNamespaced: false },
  {
    ...CORE,
    plural: "replicationcontrollers",
    kind: "ReplicationController",
    isNamespaced: true,
    hasStatus: true,
  },
  { ...CORE, plural: "podtemplates", kind: "PodTemplate", isNamespaced: true },
  { ...APPS, plural: "deployments", kind: "Deployment", isNamespaced: true, hasStatus: true },
  { ...APPS, plural: "replicasets", kind: "ReplicaSet", isNamespaced: true, hasStatus: true },
  { ...APPS, plural: "statefulsets", kind: "StatefulSet", isNamespaced: true, hasStatus: true },
  { ...APPS, plural: "daemonsets", kind: "DaemonSet", isNamespaced: true, hasStatus: true },
  { ...BATCH, plural: "jobs", kind: "Job", isNamespaced: true, hasStatus: true },
  { ...BATCH, plural: "cronjobs", kind: "CronJob", isNamespaced: true, hasStatus: true },
  { ...RBAC, plural: "roles", kind: "Role", isNamespaced: true },
  { ...RBAC, plural: "clusterroles", kind: "ClusterRole", isNamespaced: false },
  { ...RBAC, plural: "rolebindings", kind: "RoleBinding", isNamespaced: true },
  { ...RBAC, plural: "clusterrolebindings", kind: "ClusterRoleBinding", isNamespaced: false },
  {
    ...ADMISSION,
    plural: "validatingwebhookconfigurations",
    kind: "ValidatingWebhookConfiguration",
  },
  { ...ADMISSION, plural: "mutatingwebhookconfigurations", kind: "MutatingWebhookConfiguration" },
  { ...ADMISSION, plural: "validatingadmissionpolicies", kind: "ValidatingAdmissionPolicy" },
  { ...ADMISSION, plural: "validatingadmissionpolicybindings", kind: "ValidatingAdmissionPolicyBinding" },
  // The version before Kubernetes 1.36.
  { ...ADMISSION, version: "v1beta1", plural: "mutatingadmissionpolicies", kind: "MutatingAdmissionPolicy" },
  {
    ...ADMISSION,
    version: "v1beta1",
    plural: "mutatingadmissionpolicybindings",
    kind: "MutatingAdmissionPolicyBinding",
  },
];

export function groupVersionOf({ group, version }: Pick<Resource, "group" | "version">): string {
  return group === "" ? version : `${group}/${version}`;
}

/** `pods`, `ingresses.networking.k8s.io`: the resource's name in messages. */
export function qualifiedName({ plural, group }: Resource): string {
  return group === "" ? plural : `${plural}.${group}`;
}

export function resourceOfKind(kind: string): Resource {
  const found = resources.find((resource) => resource.kind === kind);
  if (found === undefined) throw new Error(`no resource for kind ${kind}`);
  return found;
}

/** The parts of a path below `/api/v1` or `/apis/GROUP/VERSION`. */
export interface ResourcePath {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

export function parseResourcePath(path: string): ResourcePath | undefined {
  const segments = path.split("/").slice(1).map(decodeURIComponent);
  const [root] = segments;
  const [group, version, ...rest] = root === "api" ? ["", ...segments.slice(1)] : segments.slice(1);
  if (root !== "api" && root !== "apis") return undefined;
  const isBelowNamespace = rest[0] === "namespaces" && rest.length > 2 && !isNamespaceSubresource(rest);
  const namespace = isBelowNamespace ? rest[1] : undefined;
  const [plural, name, subresource, ...more] = isBelowNamespace ? rest.slice(2) : rest;
  const resource = resources.find(
    (candidate) => candidate.group === group && candidate.version === version && candidate.plural === plural,
  );
  if (resource === undefined || more.length > 0) return undefined;
  return { resource, namespace, name, subresource };
}

/** `namespaces/x/status` belongs to the namespace, `namespaces/x/pods` is in it. */
function isNamespaceSubresource(rest: readonly string[]): boolean {
  return rest.length === 3 && (rest[2] === "status" || rest[2] === "finalize");
}
