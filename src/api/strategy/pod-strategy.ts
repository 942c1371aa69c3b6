import { isDeepStrictEqual } from "node:util";
import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import type { FeatureGates } from "../../config/feature-gates.ts";
import { type FieldError, forbiddenField, invalidValue, required } from "../field-errors.ts";
import type { Container, Pod, PodSpec } from "../objects.ts";
import type { HTTPGetAction, Lifecycle, Probe } from "../probe-objects.ts";
import {
  dropDisabledProbeFields,
  type ProbeFieldOptions,
  probeFieldOptions,
} from "../validation/disabled-probe-fields.ts";
import { subdomainProblems } from "../validation/name-rules.ts";
import { podShape } from "../validation/object-shapes.ts";
import { validateMetadata, validateMetadataUpdate } from "../validation/validate-metadata.ts";
import { podSpecErrors, unsupportedErrors } from "../validation/validate-pod-spec.ts";
import { keepingStatus, type Strategy, withFirstGeneration, withNextGeneration } from "./strategy.ts";

const POD_PHASES = ["Failed", "Pending", "Running", "Succeeded", "Unknown"];

const UPDATABLE_FIELDS = [
  "`spec.containers[*].image`",
  "`spec.initContainers[*].image`",
  "`spec.activeDeadlineSeconds`",
  "`spec.tolerations` (only additions to existing tolerations)",
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
].join(",");

export const podStrategy: Strategy<Pod> = {
  kind: "Pod",
  apiVersion: "v1",
  resource: "pods",
  isNamespaced: true,
  shape: podShape,
  otherVersions: {},
  withDefaults: (pod) => ({ ...pod, spec: withPodSpecDefaults(pod.spec) }),
  prepareForCreate: (pod, gates) => ({
    ...withFirstGeneration(withoutDisabledFields(pod, undefined, gates)),
    status: { phase: "Pending" },
  }),
  validateCreate: (pod, gates) => validatePod(pod, probeFieldOptions(gates, undefined)),
  prepareForUpdate: (next, old, gates) =>
    withNextGeneration(keepingStatus(withoutDisabledFields(next, old, gates), old), old),
  validateUpdate: (next, old, gates) => [
    ...validateMetadataUpdate(next.metadata, old.metadata),
    ...validatePod(next, probeFieldOptions(gates, old.spec)),
    ...podSpecUpdateErrors(next, old),
  ],
  warnings: () => [],
};

function withoutDisabledFields(next: Pod, old: Pod | undefined, gates: FeatureGates): Pod {
  return { ...next, spec: dropDisabledProbeFields(next.spec, old?.spec, gates) };
}

/**
 * The API server's checks of the fields that Sluice reads. Expects a value of the Pod's shape with
 * defaults and its namespace.
 */
function validatePod({ metadata, spec, status }: Pod, options: ProbeFieldOptions): FieldError[] {
  return [
    ...validateMetadata(metadata, { isNamespaced: true, nameProblems: subdomainProblems }),
    ...podSpecErrors(spec, ["spec"], { ...options, isTemplate: false }),
    ...podStatusErrors(status),
  ];
}

export function podStatusErrors(status: Pod["status"]): FieldError[] {
  return unsupportedErrors(["status", "phase"], status?.phase, POD_PHASES);
}

/** Checks a pod's immutable fields: nearly all of them. Expects both pods with defaults. */
function podSpecUpdateErrors(next: Pod, old: Pod): FieldError[] {
  const lists = (["containers", "initContainers"] as const).flatMap((name) =>
    containerListErrors(next.spec[name] ?? [], old.spec[name] ?? [], ["spec", name]),
  );
  if (lists.length > 0) return lists;
  const deadlines = deadlineErrors(next.spec.activeDeadlineSeconds, old.spec.activeDeadlineSeconds);
  if (deadlines.length > 0) return deadlines;
  const tolerations = tolerationErrors(listOf(next.spec.tolerations), listOf(old.spec.tolerations));
  const isSame = isDeepStrictEqual(withUpdatableFieldsOf(next.spec, old.spec), old.spec);
  // The API server appends a diff of Go structs, which no client reads.
  const sentence = `pod updates may not change fields other than ${UPDATABLE_FIELDS}\n`;
  return [...tolerations, ...(isSame ? [] : [forbiddenField(["spec"], sentence)])];
}

function containerListErrors(
  next: readonly Container[],
  old: readonly Container[],
  path: FieldPath,
): FieldError[] {
  if (next.length !== old.length) {
    return [forbiddenField(path, "pod updates may not add or remove containers")];
  }
  return next.flatMap(({ image = "" }, index) => (image === "" ? [required([...path, index, "image"])] : []));
}

function deadlineErrors(next: unknown, old: unknown): FieldError[] {
  const path = ["spec", "activeDeadlineSeconds"];
  if (typeof next !== "number") {
    const sentence = "must not update from a positive integer to nil value";
    return old === undefined ? [] : [invalidValue(path, next, sentence)];
  }
  if (next < 0 || next > 2 ** 31 - 1) {
    return [invalidValue(path, next, `must be between 0 and ${2 ** 31 - 1}, inclusive`)];
  }
  const isLater = typeof old === "number" && next > old;
  return isLater ? [invalidValue(path, next, "must be less than or equal to previous value")] : [];
}

function tolerationErrors(next: readonly object[], old: readonly object[]): FieldError[] {
  const withoutSeconds = (toleration: object) => ({ ...toleration, tolerationSeconds: undefined });
  const kept = next.map(withoutSeconds);
  const isMissing = old.some((one) => !kept.some((other) => isDeepStrictEqual(other, withoutSeconds(one))));
  const sentence = "existing toleration can not be modified except its tolerationSeconds";
  return isMissing ? [forbiddenField(["spec", "tolerations"], sentence)] : [];
}

function withUpdatableFieldsOf(next: PodSpec, old: PodSpec): PodSpec {
  const isShortened =
    (old.terminationGracePeriodSeconds ?? 0) < 0 && next.terminationGracePeriodSeconds === 1;
  const { activeDeadlineSeconds, tolerations, ...rest } = next;
  return {
    ...rest,
    ...(old.activeDeadlineSeconds !== undefined && { activeDeadlineSeconds: old.activeDeadlineSeconds }),
    ...(old.tolerations !== undefined && { tolerations: old.tolerations }),
    ...(isShortened && { terminationGracePeriodSeconds: old.terminationGracePeriodSeconds }),
    containers: withImagesOf(next.containers, old.containers),
    ...(next.initContainers && {
      initContainers: withImagesOf(next.initContainers, old.initContainers ?? []),
    }),
  } as PodSpec;
}

function withImagesOf(next: readonly Container[], old: readonly Container[]): Container[] {
  return next.map((container, index) => {
    const image = old[index]?.image;
    return image === undefined ? container : { ...container, image };
  });
}

function listOf(value: unknown): object[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "object" && entry !== null) : [];
}

/**
 * Applies the API server's defaults to the fields that Sluice reads, in a pod or a pod template.
 */
export function withPodSpecDefaults(spec: PodSpec): PodSpec {
  const { containers = [], initContainers, ephemeralContainers } = spec;
  return {
    ...spec,
    containers: containers.map(withContainerDefaults),
    ...(initContainers && { initContainers: initContainers.map(withContainerDefaults) }),
    ...(ephemeralContainers && { ephemeralContainers: ephemeralContainers.map(withContainerDefaults) }),
    restartPolicy: spec.restartPolicy || "Always",
  };
}

function withContainerDefaults(container: Container): Container {
  const { ports, livenessProbe, readinessProbe, startupProbe, lifecycle } = container;
  return {
    ...container,
    ...(ports && { ports: ports.map((port) => ({ ...port, protocol: port.protocol || "TCP" })) }),
    ...(livenessProbe && { livenessProbe: withProbeDefaults(livenessProbe) }),
    ...(readinessProbe && { readinessProbe: withProbeDefaults(readinessProbe) }),
    ...(startupProbe && { startupProbe: withProbeDefaults(startupProbe) }),
    ...(lifecycle && { lifecycle: withLifecycleDefaults(lifecycle) }),
  };
}

/**
 * SetDefaults_Probe of k8s.io/kubernetes: zero counts as absent. `protocol` and `mode` have no
 * default.
 */
function withProbeDefaults(probe: Probe): Probe {
  const { httpGet, grpc } = probe;
  return {
    ...probe,
    ...(httpGet && { httpGet: withHTTPGetDefaults(httpGet) }),
    ...(grpc && { grpc: { ...grpc, service: grpc.service ?? "" } }),
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}

function withLifecycleDefaults(lifecycle: Lifecycle): Lifecycle {
  const { postStart, preStop } = lifecycle;
  const completed = (handler: typeof postStart) =>
    handler?.httpGet === undefined ? handler : { ...handler, httpGet: withHTTPGetDefaults(handler.httpGet) };
  return {
    ...lifecycle,
    ...(postStart && { postStart: completed(postStart) }),
    ...(preStop && { preStop: completed(preStop) }),
  } as Lifecycle;
}

function withHTTPGetDefaults(action: HTTPGetAction): HTTPGetAction {
  return { ...action, path: action.path || "/", scheme: action.scheme || "HTTP" };
}
