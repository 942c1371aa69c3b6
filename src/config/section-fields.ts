import type { Field, JsonSchema, Table } from "@sluice/client/internal/config/field";
import { declare, type FieldOptions } from "@sluice/client/internal/config/fields";
import { hasRequired, itemSchema, tableSchema } from "./json-schema.ts";

/** A section that always exists: an absent one has all defaults, and those in `options.default`. */
export function section<Value>(
  sentence: string,
  fields: Table<Value>,
  options: { readonly default?: object } = {},
): Field<Value, "*"> {
  const field: Field<Value, "*"> = declare(sentence, {
    ...options,
    type: "section",
    schema: tableSchema(fields),
    table: fields,
    read: (parent, name) => fields.read(parent.section(name, options.default)),
  });
  return { ...field, isRequired: hasRequired(fields) };
}

/** A section whose absence has a meaning. */
export function optionalSection<Value>(
  sentence: string,
  fields: Table<Value>,
): Field<Value | undefined, "*"> {
  return declare(sentence, {
    type: "optional section",
    schema: tableSchema(fields),
    table: fields,
    read: (parent, name) => (parent.has(name) ? fields.read(parent.section(name)) : undefined),
  });
}

export function sections<Value>(sentence: string, fields: Table<Value>): Field<readonly Value[], "*"> {
  return declare(sentence, {
    type: "list of sections",
    schema: { type: "array", items: itemSchema(fields) },
    table: fields,
    read: (parent, name) => parent.sections(name).map(fields.read),
  });
}

/** A map with arbitrary keys. `parse` throws RangeError. */
export function map<Value>(
  sentence: string,
  {
    parse,
    type,
    values,
    ...options
  }: FieldOptions & {
    readonly parse: (value: unknown) => Value;
    readonly type: string;
    readonly values: JsonSchema;
  },
): Field<Readonly<Record<string, Value>>, "*"> {
  return declare(sentence, {
    ...options,
    type,
    schema: { type: "object", additionalProperties: values },
    read: (parent, name) => parent.section(name).parsedEntries(parse),
  });
}
