import { badRequest } from "@sluice/client/internal/api/status";
import type { ApiObject } from "../api-object.ts";
import type { Resource } from "./resources.ts";

export type ObjectMatcher = (object: ApiObject) => boolean;

interface FieldTerm {
  readonly field: string;
  readonly operator: "=" | "==" | "!=";
  readonly value: string;
}

/**
 * Parses `spec.nodeName=worker,status.phase!=Failed`. Throws StatusError 400 for a malformed term or an
 * unsupported field.
 */
export function parseFieldSelector(selector: string, resource: Resource): ObjectMatcher {
  const requirements = fieldTerms(selector).map(({ field, operator, value }) => {
    const fieldOf = selectableValue(field, resource);
    return (object: ApiObject) => (String(fieldOf(object) ?? "") === value) === (operator !== "!=");
  });
  return (object) => requirements.every((isMet) => isMet(object));
}

/**
 * A selector's terms, sorted by bytes as in apimachinery's fields.ParseSelector. In a value, a
 * backslash escapes a comma, an equals sign or a backslash. Throws its StatusError 400.
 */
export function fieldTerms(selector: string): readonly FieldTerm[] {
  const terms = selector.match(/(?:\\.?|[^\\,])+/gs) ?? [];
  const parsed = terms
    .toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
    .map((term) => {
      const { field, operator, value } =
        /^(?<field>.*?)(?<operator>!=|==?)(?<value>.*)$/s.exec(term)?.groups ?? {};
      if (field === undefined || value === undefined)
        throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
      return { field, operator: operator as FieldTerm["operator"], value: unescaped(value) };
    });
  // apimachinery ignores a term that has only an operator.
  return parsed.filter(({ field, value }) => field !== "" || value !== "");
}

function unescaped(value: string): string {
  return value.replace(/\\(.?)|[,=]/gsu, (sequence, escaped: string | undefined) => {
    if (escaped === undefined)
      throw badRequest(`invalid field selector: unescaped character in value: ${sequence.charCodeAt(0)}`);
    if (escaped !== "" && "\\,=".includes(escaped)) return escaped;
    throw badRequest(`invalid field selector: invalid escape sequence: ${sequence}`);
  });
}

function selectableValue(field: string, resource: Resource): (object: ApiObject) => unknown {
  if (field === "metadata.name") return ({ metadata }) => metadata.name;
  if (field === "metadata.namespace") return ({ metadata }) => metadata.namespace;
  const known = Object.hasOwn(resource.selectableFields, field)
    ? resource.selectableFields[field]
    : undefined;
  if (known === undefined) throw badRequest(`field label not supported: ${field}`);
  return known;
}
