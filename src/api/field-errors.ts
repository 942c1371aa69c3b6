import { goJson, goQuote } from "@sluice/client/internal/api/go-json";
import { invalid, type StatusError } from "@sluice/client/internal/api/status";
import { formatPath } from "@sluice/client/internal/config/configuration-error";
import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";

const typeTexts = {
  FieldValueRequired: "Required value",
  FieldValueInvalid: "Invalid value",
  FieldValueNotSupported: "Unsupported value",
  FieldValueForbidden: "Forbidden",
  FieldValueTooLong: "Too long",
  FieldValueDuplicate: "Duplicate value",
  FieldValueNotFound: "Not found",
} as const;

type FieldErrorType = keyof typeof typeTexts;

/**
 * An error in one field, as Kubernetes' field.Error. The closed list of types gives every message
 * the same form.
 */
export interface FieldError {
  readonly type: FieldErrorType;
  readonly path: FieldPath;
  readonly badValue?: unknown;
  readonly detail: string;
}

export function required(path: FieldPath, detail = ""): FieldError {
  return { type: "FieldValueRequired", path, detail };
}

export function invalidValue(path: FieldPath, badValue: unknown, detail: string): FieldError {
  return { type: "FieldValueInvalid", path, badValue, detail };
}

/** Lists the values in the given order: Kubernetes sorts only those that it holds in a set. */
export function notSupported(path: FieldPath, badValue: unknown, supported: readonly string[]): FieldError {
  const detail = `supported values: ${supported.map(goQuote).join(", ")}`;
  return { type: "FieldValueNotSupported", path, badValue, detail };
}

export function forbiddenField(path: FieldPath, detail: string): FieldError {
  return { type: "FieldValueForbidden", path, detail };
}

export function tooLong(path: FieldPath, maxBytes: number): FieldError {
  return { type: "FieldValueTooLong", path, detail: `may not be more than ${maxBytes} bytes` };
}

export function duplicate(path: FieldPath, badValue: unknown): FieldError {
  return { type: "FieldValueDuplicate", path, badValue, detail: "" };
}

/** `spec.containers[0].name: Invalid value: "A": <detail>`. */
export function fieldErrorText(error: FieldError): string {
  return `${formatPath(error.path)}: ${bodyText(error)}`;
}

/** One error alone, several as `[e1, e2]`; duplicates once. */
export function aggregateText(errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map(fieldErrorText))];
  return texts.length === 1 ? texts.join("") : `[${texts.join(", ")}]`;
}

/** The 422 answer for an invalid object. `group` is the API group, empty for core. */
export function invalidObject(
  kind: string,
  name: string,
  errors: readonly FieldError[],
  group = "",
): StatusError {
  const causes = errors.map((error) => ({
    reason: error.type,
    message: bodyText(error),
    field: formatPath(error.path),
  }));
  return invalid(kind, name, aggregateText(errors), causes, group);
}

/** The text without the field, also used as a cause's message. */
function bodyText({ type, badValue, detail }: FieldError): string {
  const showsValue =
    type === "FieldValueInvalid" ||
    type === "FieldValueNotSupported" ||
    type === "FieldValueDuplicate" ||
    type === "FieldValueNotFound";
  const parts = [typeTexts[type], ...(showsValue ? [valueText(badValue)] : []), detail];
  return parts.filter((part) => part !== "").join(": ");
}

function valueText(value: unknown): string {
  return typeof value === "string" ? goQuote(value) : goJson(value ?? null);
}
