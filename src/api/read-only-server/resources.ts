import type { ApiObject } from "../api-object.ts";
import { NETWORKING_API_VERSION } from "../networking-objects.ts";
import { type Printer, printerOf } from "./columns.ts";

/** One row for each served resource; discovery, routing and listing read only these. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly name: string;
  readonly singularName: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** Absent: get, list and watch. */
  readonly verbs?: readonly string[];
  /** The columns that kubectl prints. */
  readonly printer: Printer;
  readonly shortNames: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources: readonly Subresource[];
  /** Fields that a field selector may use, besides name and namespace. */
  readonly selectableFields: Readonly<Record<string, (object: ApiObject) => unknown>>;
}

interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
}

export const READ_VERBS = ["get", "list", "watch"] as const;
const STREAM_VERBS = ["create", "get"] as const;

/** Reads a path in an object; undefined if a part is absent. */
const field =
  (...path: readonly string[]) =>
  (object: ApiObject): unknown =>
    path.reduce<unknown>((value, part) => (value as Record<string, unknown> | undefined)?.[part], object);

const CORE = { group: "", version: "v1" };
const [NETWORKING_GROUP = "", NETWORKING_VERSION = ""] = NETWORKING_API_VERSION.split("/");
const NETWORKING = { group: NETWORKING_GROUP, version: NETWORKING_VERSION };

export const resources: readonly Resource[] = [
  {
    ...CORE,
    name: "namespaces",
    singularName: "namespace",
    kind: "Namespace",
    printer: printerOf("Namespace"),
    isNamespaced: false,
    shortNames: ["ns"],
    subresources: [],
    selectableFields: { "status.phase": field("status", "phase") },
  },
  {
    ...CORE,
    name: "nodes",
    singularName: "node",
    kind: "Node",
    printer: printerOf("Node"),
    isNamespaced: false,
    shortNames: ["no"],
    subresources: [],
    selectableFields: { "spec.unschedulable": (object) => field("spec", "unschedulable")(object) ?? false },
  },
  {
    ...CORE,
    name: "pods",
    singularName: "pod",
    kind: "Pod",
    printer: printerOf("Pod"),
    isNamespaced: true,
    shortNames: ["po"],
    categories: ["all"],
    subresources: [
      { name: "attach", kind: "PodAttachOptions", verbs: STREAM_VERBS },
      { name: "exec", kind: "PodExecOptions", verbs: STREAM_VERBS },
      { name: "portforward", kind: "PodPortForwardOptions", verbs: STREAM_VERBS },
    ],
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
  {
    ...CORE,
    name: "services",
    singularName: "service",
    kind: "Service",
    printer: printerOf("Service"),
    isNamespaced: true,
    shortNames: ["svc"],
    categories: ["all"],
    subresources: [],
    selectableFields: { "spec.clusterIP": field("spec", "clusterIP"), "spec.type": field("spec", "type") },
  },
  {
    group: "apps",
    version: "v1",
    name: "deployments",
    singularName: "deployment",
    kind: "Deployment",
    printer: printerOf("Deployment"),
    isNamespaced: true,
    shortNames: ["deploy"],
    categories: ["all"],
    subresources: [],
    selectableFields: {},
  },
  {
    ...NETWORKING,
    name: "ingressclasses",
    singularName: "ingressclass",
    kind: "IngressClass",
    printer: printerOf("IngressClass"),
    isNamespaced: false,
    shortNames: [],
    subresources: [],
    selectableFields: {},
  },
  {
    ...NETWORKING,
    name: "ingresses",
    singularName: "ingress",
    kind: "Ingress",
    printer: printerOf("Ingress"),
    isNamespaced: true,
    shortNames: ["ing"],
    subresources: [],
    selectableFields: {},
  },
];

const AUTHORIZATION = "authorization.k8s.io";

const AUTHENTICATION = "authentication.k8s.io";

export const reviewResources: readonly ReviewResource[] = [
  {
    group: AUTHENTICATION,
    version: "v1",
    name: "selfsubjectreviews",
    kind: "SelfSubjectReview",
  },
  // kubectl 1.27 posts its SelfSubjectReview in this version.
  {
    group: AUTHENTICATION,
    version: "v1beta1",
    name: "selfsubjectreviews",
    kind: "SelfSubjectReview",
  },
  {
    group: AUTHORIZATION,
    version: "v1",
    name: "selfsubjectaccessreviews",
    kind: "SelfSubjectAccessReview",
  },
  {
    group: AUTHORIZATION,
    version: "v1",
    name: "selfsubjectrulesreviews",
    kind: "SelfSubjectRulesReview",
  },
];

/** `pods`, `ingresses.networking.k8s.io`: the resource's name in messages. */
export function qualifiedNameOf({ name, group }: Resource): string {
  return group === "" ? name : `${name}.${group}`;
}

export function resourcesOf(group: string, version: string): readonly Resource[] {
  return resources.filter((resource) => resource.group === group && resource.version === version);
}

/**
 * Self-reviews: clients POST them and get the answer at once; nothing is stored. The gateway
 * answers them; discovery announces them.
 */
export interface ReviewResource {
  readonly group: string;
  readonly version: string;
  readonly name: string;
  readonly kind: string;
}

/** The review at a path, or undefined. */
export function reviewAt(path: string): ReviewResource | undefined {
  return reviewResources.find(({ group, version, name }) => path === `/apis/${group}/${version}/${name}`);
}
