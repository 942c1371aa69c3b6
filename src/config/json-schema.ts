import type { Field, JsonSchema, Table } from "@sluice/client/internal/config/field";

/**
 * A section's schema for editors. Accepts all that the reader accepts; only the reader checks
 * ranges of quantities and durations, and rules across fields.
 */
export function tableSchema({ fields }: Pick<Table, "fields">): JsonSchema {
  const entries = Object.entries<Field>(fields);
  const required = entries.filter(([, { isRequired }]) => isRequired).map(([name]) => name);
  return {
    type: "object",
    properties: Object.fromEntries(entries.map(([name, field]) => [name, fieldSchema(field)])),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
}

/** The schema of an item in a list of sections. */
export function itemSchema(table: Pick<Table, "fields">): JsonSchema {
  return hasRequired(table) ? tableSchema(table) : orNull(tableSchema(table));
}

export function hasRequired({ fields }: Pick<Table, "fields">): boolean {
  return Object.values<Field>(fields).some(({ isRequired }) => isRequired);
}

function fieldSchema({ sentence, schema, isRequired, default: usual }: Field): JsonSchema {
  return {
    description: sentence,
    ...(isRequired ? schema : orNull(schema)),
    ...(!isRequired && usual !== undefined && { default: usual }),
  };
}

/** null is a field without a value and counts as absent. */
function orNull(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.enum)) return { ...schema, enum: [...schema.enum, null] };
  if (Array.isArray(schema.anyOf)) return { ...schema, anyOf: [...schema.anyOf, { type: "null" }] };
  return { ...schema, type: [...new Set([schema.type, "null"].flat())] };
}
