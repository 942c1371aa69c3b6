// src/api: the Kubernetes API's conventions: defaults, validation, conversion, discovery, Table

import type { ApiObject, Extensible, ObjectMeta } from "./api-object.ts";
import type { EndpointSlice, Ingress, IngressClass, Lease, Secret, Service } from "./networking-objects.ts";
import type { Lifecycle, Probe } from "./probe-objects.ts";
import type { LabelSelector, RbacObject } from "./rbac-objects.ts";

type NetworkingObject = Ingress | IngressClass;

type ServiceObject = Service | EndpointSlice | Secret | Lease;

export interface Pod extends Extensible {
  readonly apiVersion: "v1";
  readonly kind: "Pod";
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
  readonly status?: PodStatus;
}

export interface PodSpec extends Extensible {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly ephemeralContainers?: readonly Container[];
  /** Empty or absent before the pod is scheduled. */
  readonly nodeName?: string;
  readonly restartPolicy?: string;
  /** Conditions, besides the containers, that make the pod ready. */
  readonly readinessGates?: readonly ({ readonly conditionType?: string } & Extensible)[];
  /** The pod fails this many seconds after its start. */
  readonly activeDeadlineSeconds?: number;
  /** Seconds between SIGTERM and SIGKILL [30]. */
  readonly terminationGracePeriodSeconds?: number;
}

export interface Container extends Extensible {
  readonly name: string;
  readonly image?: string;
  readonly ports?: readonly ContainerPort[];
  /** `Always` turns an init container into one that runs beside the others. */
  readonly restartPolicy?: string;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly lifecycle?: Lifecycle;
}

export interface ContainerPort extends Extensible {
  readonly name?: string;
  readonly containerPort: number;
  readonly hostPort?: number;
  readonly protocol?: string;
}

export interface PodStatus extends Extensible {
  readonly phase?: string;
  readonly reason?: string;
  readonly podIP?: string;
  readonly hostIP?: string;
  readonly nominatedNodeName?: string;
  readonly startTime?: string;
  readonly conditions?: readonly Condition[];
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
}

export interface ContainerStatus extends Extensible {
  readonly name: string;
  readonly ready?: boolean;
  /** True once the startup probe succeeded, or the container runs without one. */
  readonly started?: boolean;
  readonly containerID?: string;
  readonly restartCount?: number;
  readonly state?: {
    readonly running?: { readonly startedAt?: string };
    readonly waiting?: { readonly reason?: string };
    readonly terminated?: { readonly reason?: string; readonly exitCode?: number; readonly signal?: number };
  };
}

export interface Condition extends Extensible {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
}

export interface Node extends Extensible {
  readonly apiVersion: "v1";
  readonly kind: "Node";
  readonly metadata: ObjectMeta;
  readonly spec?: Extensible & { readonly unschedulable?: boolean };
  readonly status?: NodeStatus;
}

interface NodeStatus extends Extensible {
  readonly addresses?: readonly NodeAddress[];
  /** The wire name is `Port`, the API's only capitalized field. */
  readonly daemonEndpoints?: { readonly kubeletEndpoint?: { readonly Port?: number } };
  /** Features that the kubelet declares (KEP-5328), such as `ExtendWebSocketsToKubelet`. */
  readonly declaredFeatures?: readonly string[];
  readonly conditions?: readonly Condition[];
  readonly nodeInfo?: Readonly<Record<string, string>>;
}

export interface NodeAddress extends Extensible {
  readonly type: string;
  readonly address: string;
}

export interface Namespace extends Extensible {
  readonly apiVersion: "v1";
  readonly kind: "Namespace";
  readonly metadata: ObjectMeta;
  readonly status?: Extensible & { readonly phase?: string };
}

/** Clients ask it which pods it selects. No controller creates them. */
interface Deployment extends AppsWorkload {
  readonly apiVersion: "apps/v1";
  readonly kind: "Deployment";
  readonly metadata: ObjectMeta;
  readonly status?: Extensible & {
    readonly readyReplicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
  };
}

/** The kinds that the read-only API serves; never a Secret. */
export type ServedObject = Pod | Node | Namespace | Service | Deployment | NetworkingObject;

export type KubernetesObject =
  | Pod
  | Node
  | Namespace
  | RbacObject
  | ServiceObject
  | Deployment
  | NetworkingObject;

export type ObjectKind = KubernetesObject["kind"];

export type ObjectOfKind<Kind extends ObjectKind> = Extract<KubernetesObject, { readonly kind: Kind }>;

const CLUSTER_KINDS: ReadonlySet<string> = new Set<ObjectKind>([
  "Pod",
  "Node",
  "Namespace",
  "Role",
  "ClusterRole",
  "RoleBinding",
  "ClusterRoleBinding",
  "Service",
  "Deployment",
  "EndpointSlice",
  "Secret",
  "Lease",
  "Ingress",
  "IngressClass",
]);

/**
 * The kinds that the in-memory cluster stores; others are only validated. Expects an object from
 * `readObject`.
 */
export function isClusterObject(object: ApiObject): object is KubernetesObject {
  return CLUSTER_KINDS.has(object.kind);
}

export interface ObjectChange {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: KubernetesObject;
  /** The replaced object; a watch with a selector needs it to see an object leave. */
  readonly previous?: KubernetesObject;
  readonly resourceVersion: number;
}

/** A controller creates pods from this. */
export interface PodTemplateSpec extends Extensible {
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec: PodSpec;
}

/** Deployment, ReplicaSet, StatefulSet and DaemonSet (apps/v1). */
export interface AppsWorkload extends ApiObject {
  readonly spec: Extensible & {
    readonly replicas?: number;
    readonly selector?: LabelSelector;
    readonly template: PodTemplateSpec;
  };
}

export interface ReplicationController extends ApiObject {
  readonly spec: Extensible & {
    readonly replicas?: number;
    readonly selector?: Readonly<Record<string, string>>;
    readonly template?: PodTemplateSpec;
  };
}

interface JobSpec extends Extensible {
  readonly parallelism?: number;
  readonly completions?: number;
  readonly backoffLimit?: number;
  readonly activeDeadlineSeconds?: number;
  readonly template: PodTemplateSpec;
}

export interface Job extends ApiObject {
  readonly spec: JobSpec;
}

export interface CronJob extends ApiObject {
  readonly spec: Extensible & {
    readonly schedule?: string;
    readonly concurrencyPolicy?: string;
    readonly jobTemplate: Extensible & { readonly metadata?: Partial<ObjectMeta>; readonly spec: JobSpec };
  };
}

export interface PodTemplate extends ApiObject {
  readonly template: PodTemplateSpec;
}
