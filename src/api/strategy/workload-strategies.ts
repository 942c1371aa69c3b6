import type { FeatureGates } from "../../config/feature-gates.ts";
import type { ApiObject } from "../api-object.ts";
import type { FieldError } from "../field-errors.ts";
import type {
  AppsWorkload,
  CronJob,
  Job,
  PodTemplate,
  PodTemplateSpec,
  ReplicationController,
} from "../objects.ts";
import {
  dropDisabledProbeFields,
  type ProbeFieldOptions,
  probeFieldOptions,
} from "../validation/disabled-probe-fields.ts";
import { metadataShape, podSpecShape } from "../validation/object-shapes.ts";
import {
  int32,
  int64,
  listOf,
  named,
  type Shape,
  struct,
  text,
  textMap,
  texts,
} from "../validation/shape.ts";
import { validateMetadataUpdate } from "../validation/validate-metadata.ts";
import {
  immutableErrors,
  statefulSetUpdateErrors,
  validateAppsWorkload,
  validateCronJob,
  validateJob,
  validatePodTemplate,
  validateReplicationController,
} from "../validation/validate-workload.ts";
import { withPodSpecDefaults } from "./pod-strategy.ts";
import { keepingStatus, type Strategy, withFirstGeneration, withNextGeneration } from "./strategy.ts";

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

const replicationControllerShape = struct("ReplicationController", {
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

const jobShape = struct("Job", { ...head, spec: jobSpec });

const cronJobShape = struct("CronJob", {
  ...head,
  spec: struct("CronJobSpec", {
    schedule: text,
    concurrencyPolicy: named("ConcurrencyPolicy"),
    jobTemplate: struct("JobTemplateSpec", { metadata: metadataShape, spec: jobSpec }),
  }),
});

const podTemplateShape = struct("PodTemplate", { ...head, template });

/** Locates an object's pod template, and validates the rest. */
interface WorkloadRules<T extends ApiObject>
  extends Pick<Strategy<T>, "kind" | "apiVersion" | "resource" | "shape"> {
  templateOf(object: T): PodTemplateSpec | undefined;
  withTemplate(object: T, template: PodTemplateSpec): T;
  /** Defaults besides those of the template. */
  withOwnDefaults(object: T): T;
  validate(object: T, options: ProbeFieldOptions): FieldError[];
  updateErrors(next: T, old: T): FieldError[];
}

/** A kind with a pod template, whose defaults, cleared fields and validation are a pod's. */
function workloadStrategy<T extends ApiObject>(rules: WorkloadRules<T>): Strategy<T> {
  const { kind, apiVersion, resource, shape, templateOf, withTemplate } = rules;
  const withoutDisabledFields = (next: T, old: T | undefined, gates: FeatureGates): T => {
    const template = templateOf(next);
    if (template === undefined) return next;
    const spec = dropDisabledProbeFields(template.spec, old && templateOf(old)?.spec, gates);
    return withTemplate(next, { ...template, spec });
  };
  return {
    kind,
    apiVersion,
    resource,
    shape,
    isNamespaced: true,
    otherVersions: {},
    withDefaults: (object) => {
      const template = templateOf(object);
      if (template === undefined) return rules.withOwnDefaults(object);
      const spec = withPodSpecDefaults(template.spec ?? {});
      return rules.withOwnDefaults(withTemplate(object, { ...template, spec }));
    },
    prepareForCreate: ({ status: _, ...object }, gates) =>
      withFirstGeneration(withoutDisabledFields(object as T, undefined, gates)),
    validateCreate: (object, gates) => rules.validate(object, probeFieldOptions(gates, undefined)),
    prepareForUpdate: (next, old, gates) =>
      withNextGeneration(keepingStatus(withoutDisabledFields(next, old, gates), old), old),
    validateUpdate: (next, old, gates) => [
      ...validateMetadataUpdate(next.metadata, old.metadata),
      ...rules.validate(next, probeFieldOptions(gates, templateOf(old)?.spec)),
      ...rules.updateErrors(next, old),
    ],
    warnings: () => [],
  };
}

const EMPTY_TEMPLATE = { spec: {} } as unknown as PodTemplateSpec;
/** Go decodes an absent struct as an empty one. */
function specOf<T extends { readonly spec?: object }>(object: T): NonNullable<T["spec"]> {
  return (object.spec ?? {}) as NonNullable<T["spec"]>;
}

function appsStrategy(kind: string, updateErrors: WorkloadRules<AppsWorkload>["updateErrors"]) {
  return workloadStrategy<AppsWorkload>({
    kind,
    apiVersion: "apps/v1",
    resource: `${kind.toLowerCase()}s`,
    shape: appsShape(kind),
    templateOf: (object) => specOf(object).template ?? EMPTY_TEMPLATE,
    withTemplate: (object, template) => ({ ...object, spec: { ...specOf(object), template } }),
    withOwnDefaults: (object) =>
      kind === "DaemonSet" ? object : { ...object, spec: { replicas: 1, ...object.spec } },
    validate: validateAppsWorkload,
    updateErrors,
  });
}

const keepingSelector = (next: AppsWorkload, old: AppsWorkload): FieldError[] =>
  immutableErrors(next.spec, old.spec, ["selector"]);

const replicationControllerStrategy = workloadStrategy<ReplicationController>({
  kind: "ReplicationController",
  apiVersion: "v1",
  resource: "replicationcontrollers",
  shape: replicationControllerShape,
  templateOf: (object) => specOf(object).template,
  withTemplate: (object, template) => ({ ...object, spec: { ...specOf(object), template } }),
  withOwnDefaults: (object) => {
    const { selector = {}, template, ...spec } = specOf(object);
    const labels = template?.metadata?.labels ?? {};
    const chosen = Object.keys(selector).length === 0 ? labels : selector;
    return {
      ...withLabelsOf(object, labels),
      spec: { replicas: 1, ...spec, selector: chosen, ...(template && { template }) },
    };
  },
  validate: validateReplicationController,
  updateErrors: () => [],
});

/** An object without labels gets its template's. */
function withLabelsOf<T extends ApiObject>(object: T, labels: Readonly<Record<string, string>>): T {
  const { metadata } = object;
  return Object.keys(metadata.labels ?? {}).length === 0
    ? { ...object, metadata: { ...metadata, labels } }
    : object;
}

/**
 * A Job's pods get its name as a label. By an oversight in Kubernetes' defaults so does a Job that
 * takes their labels.
 */
function withJobName(job: Job): Job {
  const { name } = job.metadata;
  const template = specOf(job).template ?? EMPTY_TEMPLATE;
  const given = template.metadata?.labels ?? {};
  const labels = { ...given, ...(name && { "batch.kubernetes.io/job-name": name }) };
  const labelled = { ...template, metadata: { ...template.metadata, labels } };
  const named = { ...job, spec: { ...specOf(job), template: labelled } };
  return Object.keys(given).length === 0 ? named : withLabelsOf(named, labels);
}

const jobStrategy = workloadStrategy<Job>({
  kind: "Job",
  apiVersion: "batch/v1",
  resource: "jobs",
  shape: jobShape,
  templateOf: (object) => specOf(object).template ?? EMPTY_TEMPLATE,
  withTemplate: (object, template) => ({ ...object, spec: { ...specOf(object), template } }),
  withOwnDefaults: withJobName,
  validate: validateJob,
  updateErrors: (next, old) => immutableErrors(next.spec, old.spec, ["selector", "template"]),
});

const cronJobStrategy = workloadStrategy<CronJob>({
  kind: "CronJob",
  apiVersion: "batch/v1",
  resource: "cronjobs",
  shape: cronJobShape,
  templateOf: (object) => specOf(object).jobTemplate?.spec?.template ?? EMPTY_TEMPLATE,
  withTemplate: (object, template) => {
    const spec = specOf(object);
    const jobTemplate = (spec.jobTemplate ?? {}) as Partial<CronJob["spec"]["jobTemplate"]>;
    const jobSpec = { ...jobTemplate.spec, template };
    return { ...object, spec: { ...spec, jobTemplate: { ...jobTemplate, spec: jobSpec } } };
  },
  withOwnDefaults: (object) => ({
    ...object,
    spec: { ...object.spec, concurrencyPolicy: object.spec.concurrencyPolicy || "Allow" },
  }),
  validate: validateCronJob,
  updateErrors: () => [],
});

const podTemplateStrategy = workloadStrategy<PodTemplate>({
  kind: "PodTemplate",
  apiVersion: "v1",
  resource: "podtemplates",
  shape: podTemplateShape,
  templateOf: (object) => object.template ?? EMPTY_TEMPLATE,
  withTemplate: (object, template) => ({ ...object, template }),
  withOwnDefaults: (object) => object,
  validate: validatePodTemplate,
  updateErrors: () => [],
});

export const workloadStrategies: readonly Strategy[] = [
  replicationControllerStrategy as Strategy,
  podTemplateStrategy as Strategy,
  appsStrategy("Deployment", keepingSelector) as Strategy,
  appsStrategy("ReplicaSet", keepingSelector) as Strategy,
  appsStrategy("StatefulSet", (next, old) => statefulSetUpdateErrors(next.spec, old.spec)) as Strategy,
  appsStrategy("DaemonSet", keepingSelector) as Strategy,
  jobStrategy as Strategy,
  cronJobStrategy as Strategy,
];

/** Deployment, ReplicaSet, StatefulSet or DaemonSet. */
function appsShape(kind: string): Shape {
  return struct(kind, { ...head, spec: struct(`${kind}Spec`, { replicas: int32, selector, template }) });
}
