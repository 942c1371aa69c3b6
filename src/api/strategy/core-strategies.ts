import type { Namespace, Node } from "../objects.ts";
import { namespaceShape, nodeShape } from "../validation/object-shapes.ts";
import { validateNamespace, validateNode } from "../validation/validate-node.ts";
import { keepingStatus, plainStrategy } from "./plain-strategy.ts";

export const nodeStrategy = plainStrategy<Node>({
  kind: "Node",
  apiVersion: "v1",
  resource: "nodes",
  isNamespaced: false,
  shape: nodeShape,
  validate: validateNode,
  prepareForUpdate: keepingStatus,
});

export const namespaceStrategy = plainStrategy<Namespace>({
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
