import { isDeepStrictEqual } from "node:util";
import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type FieldError, forbiddenField, invalidValue, notSupported, required } from "../field-errors.ts";
import { matchesSelector } from "../label-match.ts";
import type {
  AppsWorkload,
  CronJob,
  Job,
  PodTemplate,
  PodTemplateSpec,
  ReplicationController,
} from "../objects.ts";
import type { LabelSelector } from "../rbac-objects.ts";
import type { ProbeFieldOptions } from "./disabled-probe-fields.ts";
import { labelProblems, subdomainProblems } from "./name-rules.ts";
import { selectorErrors } from "./validate-label-selector.ts";
import { annotationErrors, FIELD_IS_IMMUTABLE, labelErrors, validateMetadata } from "./validate-metadata.ts";
import { podSpecErrors } from "./validate-pod-spec.ts";

/** A CronJob's Jobs append eleven characters to its name. */
const MAX_CRON_JOB_NAME_CHARACTERS = 52;
const NO_MATCH = "`selector` does not match template `labels`";
const namespaced = { isNamespaced: true, nameProblems: subdomainProblems };

/**
 * Kubernetes' message for an unusable selector, with its name for the kind. A DaemonSet's template
 * is still checked.
 */
const SELECTOR_SENTENCES: Readonly<Record<string, { readonly name: string; readonly unusable?: string }>> = {
  Deployment: { name: "deployment", unusable: "invalid label selector" },
  ReplicaSet: { name: "deployment", unusable: "invalid label selector" },
  StatefulSet: { name: "statefulset", unusable: "" },
  DaemonSet: { name: "daemonset" },
};

export function validateAppsWorkload(object: AppsWorkload, options: ProbeFieldOptions): FieldError[] {
  const { kind, metadata, spec } = object;
  const path = ["spec", "selector"];
  const { name, unusable } = SELECTOR_SENTENCES[kind] ?? { name: kind.toLowerCase() };
  const { selector, template } = spec;
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  const isEmpty = Object.keys(matchLabels).length + matchExpressions.length === 0;
  const inSelector = selector === undefined ? [] : selectorErrors(selector, path);
  const isUnusable = inSelector.length > 0;
  // An absent selector selects nothing, an empty one everything.
  const isMismatch =
    !isUnusable && (selector === undefined || !matchesSelector(selector, labelsOf(template)));
  const ofEmpty =
    selector !== undefined && isEmpty
      ? [invalidValue(path, selector, `empty selector is invalid for ${name}`)]
      : [];
  // A Deployment's template is validated as a ReplicaSet's.
  const holder = kind === "Deployment" ? "ReplicaSet" : kind;
  const ofTemplate = lastingTemplateErrors(template, ["spec", "template"], options, holder);
  const mismatch = isMismatch ? [mismatchOf(template)] : [];
  const common = [
    ...validateMetadata(metadata, metadataRulesOf(kind)),
    ...countErrors(spec.replicas, ["spec", "replicas"]),
  ];
  if (kind === "DaemonSet") return [...common, ...inSelector, ...mismatch, ...ofEmpty, ...ofTemplate];
  return [
    ...common,
    ...(selector === undefined ? [required(path)] : []),
    ...inSelector,
    ...ofEmpty,
    ...mismatch,
    ...(isUnusable && unusable !== undefined
      ? [invalidValue(path, printed(selector), unusable)]
      : ofTemplate),
  ];
}

/** Orders members as in Go's struct. */
function printed({ matchLabels, matchExpressions }: LabelSelector = {}): LabelSelector {
  return {
    ...(matchLabels && { matchLabels: sorted(matchLabels) }),
    ...(matchExpressions && {
      matchExpressions: matchExpressions.map((requirement) => {
        const { key = "", operator = "", values = [] } = requirement ?? {};
        return { key, operator, ...(values.length > 0 && { values }) };
      }),
    }),
  };
}

/** A StatefulSet's name is part of its pods' names and host names. */
function metadataRulesOf(kind: string) {
  return kind === "StatefulSet" ? { isNamespaced: true, nameProblems: labelProblems } : namespaced;
}

export function validateReplicationController(
  { kind, metadata, spec }: ReplicationController,
  options: ProbeFieldOptions,
): FieldError[] {
  const { replicas, selector = {}, template } = spec;
  const isEmpty = Object.keys(selector).length === 0;
  const ofMetadata = validateMetadata(metadata, namespaced);
  // Kubernetes declares these two checks on the types, and runs them last.
  const isDeclared = ({ path, type }: FieldError): boolean =>
    path.join(".") === "metadata.name" && type === "FieldValueInvalid";
  const declared = [...ofMetadata.filter(isDeclared), ...countErrors(replicas, ["spec", "replicas"])];
  const common = [
    ...ofMetadata.filter((error) => !isDeclared(error)),
    ...(isEmpty ? [required(["spec", "selector"])] : []),
  ];
  if (template === undefined) return [...common, required(["spec", "template"]), ...declared];
  const isMatch = isEmpty || matchesSelector({ matchLabels: selector }, labelsOf(template));
  return [
    ...common,
    ...(isMatch ? [] : [mismatchOf(template)]),
    ...lastingTemplateErrors(template, ["spec", "template"], options, kind),
    ...declared,
  ];
}

export function validateJob({ metadata, spec }: Job, options: ProbeFieldOptions): FieldError[] {
  return [...validateMetadata(metadata, namespaced), ...jobSpecErrors(spec, ["spec"], options)];
}

export function validateCronJob({ metadata, spec }: CronJob, options: ProbeFieldOptions): FieldError[] {
  const { schedule = "", concurrencyPolicy = "", jobTemplate } = spec;
  const policies = ["Allow", "Forbid", "Replace"];
  const { name = "" } = metadata;
  const nameSentence = `must be no more than ${MAX_CRON_JOB_NAME_CHARACTERS} characters`;
  return [
    ...validateMetadata(metadata, namespaced),
    ...(policies.includes(concurrencyPolicy)
      ? []
      : [notSupported(["spec", "concurrencyPolicy"], concurrencyPolicy, policies)]),
    ...jobSpecErrors(jobTemplate.spec, ["spec", "jobTemplate", "spec"], options),
    ...(name.length > MAX_CRON_JOB_NAME_CHARACTERS
      ? [invalidValue(["metadata", "name"], name, nameSentence)]
      : []),
    // Kubernetes declares this check on the types, and runs it last.
    ...(schedule === "" ? [required(["spec", "schedule"])] : []),
  ];
}

export function validatePodTemplate(
  { metadata, template }: PodTemplate,
  options: ProbeFieldOptions,
): FieldError[] {
  return [...validateMetadata(metadata, namespaced), ...templateErrors(template, ["template"], options)];
}

/** The spec's immutable fields. */
export function immutableErrors(next: object, old: object, fields: readonly string[]): FieldError[] {
  const [after, before] = [next, old] as Record<string, unknown>[];
  return fields
    .filter((name) => !isDeepStrictEqual(after?.[name], before?.[name]))
    .map((name) => invalidValue(["spec", name], after?.[name], FIELD_IS_IMMUTABLE));
}

const UPDATABLE_STATEFULSET_FIELDS = [
  "replicas",
  "ordinals",
  "template",
  "updateStrategy",
  "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy",
  "minReadySeconds",
];

export function statefulSetUpdateErrors(next: object, old: object): FieldError[] {
  const rest = (spec: object) =>
    Object.fromEntries(Object.entries(spec).filter(([name]) => !UPDATABLE_STATEFULSET_FIELDS.includes(name)));
  if (isDeepStrictEqual(rest(next), rest(old))) return [];
  const quoted = UPDATABLE_STATEFULSET_FIELDS.map((name) => `'${name}'`);
  const fields = `${quoted.slice(0, -1).join(", ")} and ${quoted.at(-1)}`;
  const sentence = `updates to statefulset spec for fields other than ${fields} are forbidden`;
  return [forbiddenField(["spec"], sentence)];
}

function jobSpecErrors(spec: Job["spec"], path: FieldPath, options: ProbeFieldOptions): FieldError[] {
  const { template } = spec;
  const policy = template.spec.restartPolicy ?? "";
  const policyPath = [...path, "template", "spec", "restartPolicy"];
  const ending = ["OnFailure", "Never"];
  const policyErrors =
    policy === "Always"
      ? [required(policyPath, 'valid values: "OnFailure", "Never"')]
      : ending.includes(policy)
        ? []
        : [notSupported(policyPath, policy, ending)];
  return [
    ...(["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit"] as const).flatMap((name) =>
      countErrors(spec[name], [...path, name]),
    ),
    ...templateErrors(template, [...path, "template"], options),
    ...policyErrors,
  ];
}

function countErrors(value: number | undefined, path: FieldPath): FieldError[] {
  return value === undefined || value >= 0
    ? []
    : [invalidValue(path, value, "must be greater than or equal to 0")];
}

function labelsOf({ metadata }: PodTemplateSpec): Readonly<Record<string, string>> {
  return metadata?.labels ?? {};
}

/** Go prints maps sorted by key. */
function sorted(map: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function mismatchOf(template: PodTemplateSpec): FieldError {
  const labels = template.metadata?.labels;
  return invalidValue(["spec", "template", "metadata", "labels"], labels && sorted(labels), NO_MATCH);
}

/** Validates an object's pod template. Expects a value with defaults. */
function templateErrors(
  { metadata = {}, spec }: PodTemplateSpec,
  path: FieldPath,
  options: ProbeFieldOptions,
): FieldError[] {
  const hasEphemeral = (spec.ephemeralContainers ?? []).length > 0;
  const ephemeralPath = [...path, "spec", "ephemeralContainers"];
  return [
    ...labelErrors(metadata.labels ?? {}, [...path, "labels"]),
    ...annotationErrors(metadata.annotations ?? {}, [...path, "annotations"]),
    ...podSpecErrors(spec, [...path, "spec"], { ...options, isTemplate: true }),
    ...(hasEphemeral
      ? [forbiddenField(ephemeralPath, "ephemeral containers not allowed in pod template")]
      : []),
  ];
}

/** Validates the template of a controller that keeps its pods running. */
function lastingTemplateErrors(
  template: PodTemplateSpec,
  path: FieldPath,
  options: ProbeFieldOptions,
  kind: string,
): FieldError[] {
  const { restartPolicy = "", activeDeadlineSeconds } = template.spec;
  const sentence = `activeDeadlineSeconds in ${kind} is not Supported`;
  return [
    ...templateErrors(template, path, options),
    ...(restartPolicy === "Always"
      ? []
      : [notSupported([...path, "spec", "restartPolicy"], restartPolicy, ["Always"])]),
    ...(activeDeadlineSeconds === undefined
      ? []
      : [forbiddenField([...path, "spec", "activeDeadlineSeconds"], sentence)]),
  ];
}
