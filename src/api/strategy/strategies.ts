import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { duplicate, type FieldError, invalidValue, required } from "../field-errors.ts";
import {
  COORDINATION_API_VERSION,
  DISCOVERY_API_VERSION,
  type EndpointSlice,
  type IngressClass,
  type Lease,
  NETWORKING_API_VERSION,
  type Secret,
  type Service,
} from "../networking-objects.ts";
import type { Namespace, Node, NodeAddress } from "../objects.ts";
import { labelProblems, subdomainProblems } from "../validation/name-rules.ts";
import {
  endpointSliceShape,
  ingressClassShape,
  leaseShape,
  secretShape,
  serviceShape,
} from "../validation/networking-shapes.ts";
import { namespaceShape, nodeShape } from "../validation/object-shapes.ts";
import { validateIngressClass } from "../validation/validate-ingress-backend.ts";
import {
  FIELD_IS_IMMUTABLE,
  validateMetadata,
  validateMetadataUpdate,
} from "../validation/validate-metadata.ts";
import { secretWarnings, validateLease, validateSecret } from "../validation/validate-secret.ts";
import { validateEndpointSlice, validateService } from "../validation/validate-service.ts";
import { ingressStrategy } from "./ingress-strategy.ts";
import { ingressClassV1beta1, NETWORKING_V1BETA1 } from "./ingress-v1beta1.ts";
import { podStrategy } from "./pod-strategy.ts";
import {
  clusterRoleBindingStrategy,
  clusterRoleStrategy,
  roleBindingStrategy,
  roleStrategy,
} from "./rbac-strategies.ts";
import {
  keepingStatus,
  plainStrategy,
  type Strategy,
  withFirstGeneration,
  withNextGeneration,
} from "./strategy.ts";
import { workloadStrategies } from "./workload-strategies.ts";

const serviceStrategy = plainStrategy<Service>({
  kind: "Service",
  apiVersion: "v1",
  resource: "services",
  isNamespaced: true,
  shape: serviceShape,
  withDefaults: withServiceDefaults,
  validate: (service) => validateService(service, { allowsRelaxedServiceNames: true }),
  validateCreate: (service, gates) => {
    const allowsRelaxedServiceNames = gates.isEnabled("RelaxedServiceNameValidation");
    return validateService(service, { allowsRelaxedServiceNames });
  },
  prepareForCreate: ({ status: _, ...service }) => ({ ...service, status: { loadBalancer: {} } }),
  prepareForUpdate: keepingStatus,
});

const endpointSliceStrategy = plainStrategy<EndpointSlice>({
  kind: "EndpointSlice",
  apiVersion: DISCOVERY_API_VERSION,
  resource: "endpointslices",
  isNamespaced: true,
  shape: endpointSliceShape,
  withDefaults: (slice) =>
    slice.ports === undefined
      ? slice
      : {
          ...slice,
          ports: slice.ports.map((port) => ({
            ...port,
            name: port.name ?? "",
            protocol: port.protocol || "TCP",
          })),
        },
  validate: validateEndpointSlice,
});

const secretStrategy = plainStrategy<Secret>({
  kind: "Secret",
  apiVersion: "v1",
  resource: "secrets",
  isNamespaced: true,
  shape: secretShape,
  withDefaults: withSecretDefaults,
  validate: validateSecret,
  warnings: secretWarnings,
});

const leaseStrategy = plainStrategy<Lease>({
  kind: "Lease",
  apiVersion: COORDINATION_API_VERSION,
  resource: "leases",
  isNamespaced: true,
  shape: leaseShape,
  validate: validateLease,
});

function withServiceDefaults(service: Service): Service {
  const { spec = {} } = service;
  const ports = spec.ports?.map((port) => ({
    ...port,
    protocol: port.protocol || "TCP",
    // Go treats an empty name and 0 as absent.
    targetPort: port.targetPort || port.port || 0,
  }));
  return {
    ...service,
    spec: {
      ...spec,
      type: spec.type || "ClusterIP",
      sessionAffinity: spec.sessionAffinity || "None",
      ...(ports && { ports }),
    },
  };
}

/** `stringData` is write-only: its values override those in `data`. */
function withSecretDefaults({ stringData, ...secret }: Secret): Secret {
  const texts = Object.entries((stringData ?? {}) as Record<string, string>);
  const encoded = texts.map(([key, value]) => [key, Buffer.from(value).toString("base64")]);
  const data = { ...secret.data, ...Object.fromEntries(encoded) } as Record<string, string>;
  return {
    ...(secret as Secret),
    type: secret.type || "Opaque",
    ...((secret.data !== undefined || texts.length > 0) && { data }),
  };
}

const ingressClassStrategy = plainStrategy<IngressClass>({
  kind: "IngressClass",
  apiVersion: NETWORKING_API_VERSION,
  resource: "ingressclasses",
  isNamespaced: false,
  shape: ingressClassShape,
  otherVersions: { [NETWORKING_V1BETA1]: ingressClassV1beta1 },
  validate: validateIngressClass,
  withDefaults: (ingressClass) => {
    const { spec } = ingressClass;
    if (spec?.parameters === undefined || spec.parameters.scope !== undefined) return ingressClass;
    return { ...ingressClass, spec: { ...spec, parameters: { ...spec.parameters, scope: "Cluster" } } };
  },
  prepareForCreate: withFirstGeneration,
  prepareForUpdate: withNextGeneration,
  validateUpdate: (next, old) => {
    const controller = next.spec?.controller ?? "";
    const isChanged = controller !== (old.spec?.controller ?? "");
    return [
      ...validateMetadataUpdate(next.metadata, old.metadata),
      ...(isChanged ? [invalidValue(["spec", "controller"], controller, FIELD_IS_IMMUTABLE)] : []),
      ...validateIngressClass(next),
    ];
  },
});

const nodeStrategy = plainStrategy<Node>({
  kind: "Node",
  apiVersion: "v1",
  resource: "nodes",
  isNamespaced: false,
  shape: nodeShape,
  validate: validateNode,
  prepareForUpdate: keepingStatus,
});

const namespaceStrategy = plainStrategy<Namespace>({
  kind: "Namespace",
  apiVersion: "v1",
  resource: "namespaces",
  isNamespaced: false,
  shape: namespaceShape,
  withDefaults: withNameLabel,
  validate: validateNamespace,
  prepareForCreate: (namespace) => ({ ...namespace, status: { phase: "Active" } }),
  prepareForUpdate: keepingStatus,
});

/** Selectors find namespaces by this name label. */
function withNameLabel(namespace: Namespace): Namespace {
  const { name, labels } = namespace.metadata;
  if (!name) return namespace;
  const named = { ...labels, "kubernetes.io/metadata.name": name };
  return { ...namespace, metadata: { ...namespace.metadata, labels: named } };
}

/** Every known kind. */
export const strategies: readonly Strategy[] = [
  podStrategy,
  nodeStrategy,
  namespaceStrategy,
  ingressStrategy,
  ingressClassStrategy,
  roleStrategy,
  clusterRoleStrategy,
  roleBindingStrategy,
  clusterRoleBindingStrategy,
  serviceStrategy,
  endpointSliceStrategy,
  secretStrategy,
  leaseStrategy,
  ...workloadStrategies,
];

const byKind: ReadonlyMap<string, Strategy> = new Map(
  strategies.map((strategy) => [strategy.kind, strategy]),
);

export function strategyOf(kind: string): Strategy | undefined {
  return byKind.get(kind);
}

/**
 * The API server's checks of the Node fields that Sluice reads, and that the node can be dialled:
 * kubelets report address and port themselves, but a file's author may mistype them.
 */
export function validateNode({ metadata, status }: Node): FieldError[] {
  const portPath = ["status", "daemonEndpoints", "kubeletEndpoint", "Port"];
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  const isPort = port >= 0 && port <= 65_535;
  return [
    ...validateMetadata(metadata, { isNamespaced: false, nameProblems: subdomainProblems }),
    ...addressErrors(status?.addresses ?? [], ["status", "addresses"]),
    ...(isPort ? [] : [invalidValue(portPath, port, "must be between 0 and 65535, inclusive")]),
  ];
}

export function validateNamespace({ metadata }: Namespace): FieldError[] {
  return validateMetadata(metadata, { isNamespaced: false, nameProblems: labelProblems });
}

function addressErrors(addresses: readonly NodeAddress[], path: FieldPath): FieldError[] {
  const seen = new Set<string>();
  return addresses.flatMap((entry, index) => {
    const { type = "", address = "" } = entry ?? {};
    const key = JSON.stringify([type, address]);
    const isTaken = seen.has(key);
    seen.add(key);
    return [
      ...(type === "" ? [required([...path, index, "type"])] : []),
      ...(address === "" ? [required([...path, index, "address"])] : []),
      ...(isTaken ? [duplicate([...path, index], { type, address })] : []),
    ];
  });
}
