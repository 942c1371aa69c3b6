import type { ApiObject } from "./api-object.ts";
import type { Extensible, ObjectMeta } from "./object-meta.ts";
import type { PodSpec } from "./objects.ts";
import type { LabelSelector } from "./rbac-objects.ts";

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

export interface JobSpec extends Extensible {
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
