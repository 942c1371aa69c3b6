import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type FieldError, forbiddenField, invalidValue, required } from "../field-errors.ts";
import type { LabelSelector } from "../rbac-objects.ts";
import { labelValueProblems, qualifiedNameProblems } from "./name-rules.ts";

/** k8s.io/apimachinery's ValidateLabelSelector. */
export function selectorErrors(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  path: FieldPath,
): FieldError[] {
  const labelsPath = [...path, "matchLabels"];
  return [
    ...Object.entries(matchLabels).flatMap(([key, value]) => [
      ...qualifiedNameProblems(key).map((problem) => invalidValue(labelsPath, key, problem)),
      ...labelValueProblems(value).map((problem) => invalidValue(labelsPath, value, problem)),
    ]),
    ...matchExpressions.flatMap((requirement, index) =>
      requirementErrors(requirement ?? {}, [...path, "matchExpressions", index]),
    ),
  ];
}

function requirementErrors(
  { key = "", operator = "", values = [] }: { key?: string; operator?: string; values?: readonly string[] },
  path: FieldPath,
): FieldError[] {
  const errors: FieldError[] = [];
  const valuesPath = [...path, "values"];
  if (operator === "In" || operator === "NotIn") {
    if (values.length === 0) {
      errors.push(required(valuesPath, "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    if (values.length > 0) {
      const sentence = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
      errors.push(forbiddenField(valuesPath, sentence));
    }
  } else {
    errors.push(invalidValue([...path, "operator"], operator, "not a valid selector operator"));
  }
  return [
    ...errors,
    ...qualifiedNameProblems(key).map((problem) => invalidValue([...path, "key"], key, problem)),
    ...values.flatMap((value, index) =>
      labelValueProblems(value).map((problem) => invalidValue([...valuesPath, index], value, problem)),
    ),
  ];
}
