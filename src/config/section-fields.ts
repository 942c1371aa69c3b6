import type { Field, JsonSchema, Table } from "@sluice/client/internal/config/field";
import {
  type AsOf,
  type Check,
  declare,
  type FieldOptions,
  type Given,
  quoted,
  TEXT,
} from "@sluice/client/internal/config/fields";

/**
 * A section that always exists. If the file has none, it has all defaults, and those in
 * `options.default`.
 */
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
function itemSchema(table: Pick<Table, "fields">): JsonSchema {
  return hasRequired(table) ? tableSchema(table) : orNull(tableSchema(table));
}

function hasRequired({ fields }: Pick<Table, "fields">): boolean {
  return Object.values<Field>(fields).some(({ isRequired }) => isRequired);
}

function fieldSchema({ sentence, schema, isRequired, default: usual }: Field): JsonSchema {
  return {
    description: sentence,
    ...(isRequired ? schema : orNull(schema)),
    ...(!isRequired && usual !== undefined && { default: usual }),
  };
}

/** null is a field without a value, so it counts as absent. */
function orNull(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.enum)) return { ...schema, enum: [...schema.enum, null] };
  if (Array.isArray(schema.anyOf)) return { ...schema, anyOf: [...schema.anyOf, { type: "null" }] };
  return { ...schema, type: [...new Set([schema.type, "null"].flat())] };
}

/** At least one of the choices, in the given order. */
export function choices<
  const T extends string,
  const O extends FieldOptions & { readonly default?: readonly T[] },
>(sentence: string, among: readonly T[], options: O = {} as O): Field<Given<O, readonly T[]>, AsOf<O>> {
  return declare(sentence, {
    ...options,
    type: `list of ${quoted(among)}`,
    schema: { type: "array", items: { enum: among }, minItems: 1 },
    placeholder: "A,B",
    fromFlag: listOf,
    read: (section, name) => section.choices(name, among),
  });
}

export function strings<
  const O extends FieldOptions & { readonly default?: readonly string[]; readonly check?: Check },
>(sentence: string, options: O = {} as O): Field<readonly string[], AsOf<O>> {
  const { required, check } = options;
  return declare(sentence, {
    default: [],
    ...options,
    type: "list of strings",
    schema: { type: "array", items: TEXT, ...(required === undefined ? {} : { minItems: 1 }) },
    placeholder: "A,B",
    fromFlag: listOf,
    read: (section, name) => {
      const values = section.strings(name, check);
      if (required !== undefined && values?.length === 0) section.problem(name, required);
      return values;
    },
  });
}

function listOf(text: string): string[] {
  return text === "" ? [] : text.split(",").map((item) => item.trim());
}

/** Files or folders; the code that uses them reads them. */
export function files(sentence: string): Field<readonly string[], "*"> {
  return declare(sentence, {
    default: [],
    type: "list of files",
    schema: { type: "array", items: TEXT },
    read: (section, name) => section.files(name),
  });
}
