import type { Namespace, Node } from "../objects.ts";
import { namespaceShape, nodeShape } from "../validation/object-shapes.ts";
import { validateNamespace, validateNode } from "../validation/validate-node.ts";
import { keepingStatus, plainStrategy, statusOnly } from "./plain-strategy.ts";

export const nodeStrategy = plainStrategy<Node>({
  kind: "Node",
  apiVersion: "v1",
  resource: "nodes",
  isNamespaced: false,
  shape: nodeShape,
  validate: validateNode,
  prepareForUpdate: keepingStatus,
  status: statusOnly(validateNode),
});

export const namespaceStrategy = plainStrategy<Namespace>({
  kind: "Namespace",
  apiVersion: "v1",
  resource: "namespaces",
  isNamespaced: false,
  shape: namespaceShape,
  validate: validateNamespace,
  prepareForCreate: (namespace) => ({ ...namespace, status: { phase: "Active" } }),
  prepareForUpdate: keepingStatus,
  status: statusOnly(validateNamespace),
});
