import type { FieldError } from "../field-errors.ts";
import type { Pod } from "../objects.ts";
import type { ProbeFieldOptions } from "./disabled-probe-fields.ts";
import { subdomainProblems } from "./name-rules.ts";
import { unsupportedErrors } from "./validate-container.ts";
import { validateMetadata } from "./validate-metadata.ts";
import { podSpecErrors } from "./validate-pod-spec.ts";

const POD_PHASES = ["Failed", "Pending", "Running", "Succeeded", "Unknown"];

/**
 * The API server's checks of the fields that Sluice reads. Expects a value of the Pod's shape with
 * defaults and its namespace.
 */
export function validatePod({ metadata, spec, status }: Pod, options: ProbeFieldOptions): FieldError[] {
  return [
    ...validateMetadata(metadata, { isNamespaced: true, nameProblems: subdomainProblems }),
    ...podSpecErrors(spec, ["spec"], { ...options, isTemplate: false }),
    ...podStatusErrors(status),
  ];
}

export function podStatusErrors(status: Pod["status"]): FieldError[] {
  return unsupportedErrors(["status", "phase"], status?.phase, POD_PHASES);
}
