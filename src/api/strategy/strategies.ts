import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { duplicate, type FieldError, invalidValue, required } from "../field-errors.ts";
import { type IngressClass, NETWORKING_API_VERSION } from "../networking-objects.ts";
import type { Namespace, Node, NodeAddress } from "../objects.ts";
import { labelProblems, subdomainProblems } from "../validation/name-rules.ts";
import { metadataShape, nodeShape } from "../validation/object-shapes.ts";
import { named, struct, text } from "../validation/shape.ts";
import { validateIngressClass } from "../validation/validate-ingress-backend.ts";
import {
  FIELD_IS_IMMUTABLE,
  validateMetadata,
  validateMetadataUpdate,
} from "../validation/validate-metadata.ts";
import { ingressStrategy } from "./ingress-strategy.ts";
import { NETWORKING_V1BETA1 } from "./ingress-v1beta1.ts";
import { podStrategy } from "./pod-strategy.ts";
import { rbacStrategies } from "./rbac-strategies.ts";
import { leaseStrategy, secretStrategy } from "./secret-strategies.ts";
import { serviceStrategies } from "./service-strategies.ts";
import {
  keepingStatus,
  plainStrategy,
  type Strategy,
  withFirstGeneration,
  withNextGeneration,
} from "./strategy.ts";
import { workloadStrategies } from "./workload-strategies.ts";

const namespaceShape = struct("Namespace", {
  apiVersion: text,
  kind: text,
  metadata: metadataShape,
  status: struct("NamespaceStatus", { phase: named("NamespacePhase") }),
});

const ingressClassShape = struct("IngressClass", {
  apiVersion: text,
  kind: text,
  metadata: metadataShape,
  spec: struct("IngressClassSpec", {
    controller: text,
    parameters: struct(
      "IngressClassParametersReference",
      {
        apiGroup: text,
        kind: text,
        name: text,
        scope: text,
        namespace: text,
      },
      ["kind", "name"],
    ),
  }),
});

const ingressClassStrategy = plainStrategy<IngressClass>({
  kind: "IngressClass",
  apiVersion: NETWORKING_API_VERSION,
  resource: "ingressclasses",
  isNamespaced: false,
  shape: ingressClassShape,
  // Both versions have the same fields.
  otherVersions: {
    [NETWORKING_V1BETA1]: {
      shape: ingressClassShape,
      toHeld: (object) => ({ ...object, apiVersion: NETWORKING_API_VERSION }),
    },
  },
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
  ...rbacStrategies,
  ...serviceStrategies,
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
function validateNode({ metadata, status }: Node): FieldError[] {
  const portPath = ["status", "daemonEndpoints", "kubeletEndpoint", "Port"];
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  const isPort = port >= 0 && port <= 65_535;
  return [
    ...validateMetadata(metadata, { isNamespaced: false, nameProblems: subdomainProblems }),
    ...addressErrors(status?.addresses ?? [], ["status", "addresses"]),
    ...(isPort ? [] : [invalidValue(portPath, port, "must be between 0 and 65535, inclusive")]),
  ];
}

function validateNamespace({ metadata }: Namespace): FieldError[] {
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
