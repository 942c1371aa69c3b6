import type { FieldPath } from "@sluice/client/internal/config/yaml-documents";
import { type FieldError, forbiddenField, notSupported } from "../field-errors.ts";
import type { PodTemplateSpec } from "../workload-objects.ts";
import type { ProbeFieldOptions } from "./disabled-probe-fields.ts";
import { annotationErrors, labelErrors } from "./validate-metadata.ts";
import { podSpecErrors } from "./validate-pod-spec.ts";

/** Validates an object's pod template. Expects a value with defaults. */
export function templateErrors(
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
export function lastingTemplateErrors(
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
