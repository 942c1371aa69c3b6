import type { KubernetesObject, ServedObject } from "../objects.ts";
import type { ObjectSource } from "./object-source.ts";

export type ResourceName = "pods" | "nodes" | "namespaces";

/** One row per resource that is served; discovery, routing and listing read nothing else. */
export interface Resource {
  readonly name: ResourceName;
  readonly singularName: string;
  readonly kind: ServedObject["kind"];
  readonly isNamespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources: readonly Subresource[];
  get(source: ObjectSource, namespace: string, name: string): KubernetesObject | undefined;
  list(source: ObjectSource, namespace: string | undefined): readonly KubernetesObject[];
  /** Values that a field selector may ask for, besides name and namespace. */
  readonly selectableFields: Readonly<Record<string, (object: KubernetesObject) => unknown>>;
}

export interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
}

export const READ_VERBS = ["get", "list", "watch"] as const;
const STREAM_VERBS = ["create", "get"] as const;

/** A path into an object; an absent part gives undefined. */
const field =
  (...path: readonly string[]) =>
  (object: KubernetesObject): unknown =>
    path.reduce<unknown>((value, part) => (value as Record<string, unknown> | undefined)?.[part], object);

export const resources: readonly Resource[] = [
  {
    name: "namespaces",
    singularName: "namespace",
    kind: "Namespace",
    isNamespaced: false,
    shortNames: ["ns"],
    subresources: [],
    get: (source, _, name) => source.getNamespace(name),
    list: (source) => source.listNamespaces(),
    selectableFields: { "status.phase": field("status", "phase") },
  },
  {
    name: "nodes",
    singularName: "node",
    kind: "Node",
    isNamespaced: false,
    shortNames: ["no"],
    subresources: [],
    get: (source, _, name) => source.getNode(name),
    list: (source) => source.listNodes(),
    selectableFields: { "spec.unschedulable": (object) => field("spec", "unschedulable")(object) ?? false },
  },
  {
    name: "pods",
    singularName: "pod",
    kind: "Pod",
    isNamespaced: true,
    shortNames: ["po"],
    categories: ["all"],
    subresources: [
      { name: "attach", kind: "PodAttachOptions", verbs: STREAM_VERBS },
      { name: "exec", kind: "PodExecOptions", verbs: STREAM_VERBS },
      { name: "portforward", kind: "PodPortForwardOptions", verbs: STREAM_VERBS },
    ],
    get: (source, namespace, name) => source.getPod(namespace, name),
    list: (source, namespace) => source.listPods(namespace),
    selectableFields: {
      "spec.nodeName": field("spec", "nodeName"),
      "spec.restartPolicy": field("spec", "restartPolicy"),
      "spec.schedulerName": field("spec", "schedulerName"),
      "spec.serviceAccountName": field("spec", "serviceAccountName"),
      "spec.hostNetwork": (object) => field("spec", "hostNetwork")(object) ?? false,
      "status.phase": field("status", "phase"),
      "status.podIP": field("status", "podIP"),
      "status.nominatedNodeName": field("status", "nominatedNodeName"),
    },
  },
];
