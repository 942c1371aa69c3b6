import type { Namespace, Node, Pod } from "../objects.ts";
import { namespaceShape, nodeShape, podShape } from "../validation/object-shapes.ts";
import { validateNamespace, validateNode } from "../validation/validate-node.ts";
import { validatePod } from "../validation/validate-pod.ts";
import { plainStrategy } from "./plain-strategy.ts";

export const podStrategy = plainStrategy<Pod>({
  kind: "Pod",
  apiVersion: "v1",
  resource: "pods",
  isNamespaced: true,
  shape: podShape,
  validate: validatePod,
});

export const nodeStrategy = plainStrategy<Node>({
  kind: "Node",
  apiVersion: "v1",
  resource: "nodes",
  isNamespaced: false,
  shape: nodeShape,
  validate: validateNode,
});

export const namespaceStrategy = plainStrategy<Namespace>({
  kind: "Namespace",
  apiVersion: "v1",
  resource: "namespaces",
  isNamespaced: false,
  shape: namespaceShape,
  validate: validateNamespace,
});
