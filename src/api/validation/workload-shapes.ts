import { int32, int64, listOf, named, struct, text, textMap, texts } from "./go-shapes.ts";
import { metadataShape, podSpecShape } from "./object-shapes.ts";
import type { Shape } from "./shape.ts";

/** Objects with pod templates; only the template's fields. */
const head = { apiVersion: text, kind: text, metadata: metadataShape };

const template = struct("PodTemplateSpec", { metadata: metadataShape, spec: podSpecShape });

const selector = struct("LabelSelector", {
  matchLabels: textMap,
  matchExpressions: listOf(
    struct("LabelSelectorRequirement", {
      key: text,
      operator: named("LabelSelectorOperator"),
      values: texts,
    }),
  ),
});

/** Deployment, ReplicaSet, StatefulSet or DaemonSet. */
export function appsShape(kind: string): Shape {
  return struct(kind, { ...head, spec: struct(`${kind}Spec`, { replicas: int32, selector, template }) });
}

export const replicationControllerShape = struct("ReplicationController", {
  ...head,
  spec: struct("ReplicationControllerSpec", { replicas: int32, selector: textMap, template }),
});

const jobSpec = struct("JobSpec", {
  parallelism: int32,
  completions: int32,
  backoffLimit: int32,
  activeDeadlineSeconds: int64,
  template,
});

export const jobShape = struct("Job", { ...head, spec: jobSpec });

export const cronJobShape = struct("CronJob", {
  ...head,
  spec: struct("CronJobSpec", {
    schedule: text,
    concurrencyPolicy: named("ConcurrencyPolicy"),
    jobTemplate: struct("JobTemplateSpec", { metadata: metadataShape, spec: jobSpec }),
  }),
});

export const podTemplateShape = struct("PodTemplate", { ...head, template });
