import { resolve } from "node:path";
import type { Field, FieldFlag, JsonSchema, Table } from "./field.ts";
import type { FileContent } from "./named-file-text.ts";
import type { Section } from "./section.ts";

export interface FieldOptions {
  /** The property's name in the parsed configuration, `*` being the file's: `*Ms`. */
  readonly as?: string;
  /** In the file's form. */
  readonly default?: unknown;
  /** The problem of a file without this field: "is required". */
  readonly required?: string;
  /** A `sluice serve` flag; its name suffices if its value has the field's usual form. */
  readonly flag?: string | (Partial<FieldFlag> & Pick<FieldFlag, "name">);
  readonly impliedBy?: readonly FieldFlag[];
}

export type AsOf<O, Usual extends string = "*"> = O extends { readonly as: infer Name extends string }
  ? Name
  : Usual;

/** An optional field without a default may be undefined. */
export type Given<O, T> = O extends { readonly default: unknown } | { readonly required: string }
  ? T
  : T | undefined;

/** The properties that differ between types of fields. */
interface FieldType {
  readonly type: string;
  readonly range?: string;
  readonly schema: JsonSchema;
  readonly placeholder?: string;
  readonly choices?: readonly string[];
  readonly fromFlag?: FieldFlag["read"];
  readonly fallback?: unknown;
  readonly table?: Table;
  /** Undefined if the value is unusable; notes the problem. */
  readonly read: (section: Section, name: string) => unknown;
}

/** The caller guarantees that `read` and `fallback` return this type. */
export function declare<Value, As extends string>(
  sentence: string,
  { type, schema, range, table, read, ...options }: FieldType & FieldOptions,
): Field<Value, As> {
  const { as = "*", required, flag, impliedBy = [], default: usual, fallback = usual } = options;
  const { placeholder = "VALUE", choices, fromFlag = (text: string) => text } = options;
  const flagUsually = { placeholder, choices, read: fromFlag };
  const own = typeof flag === "string" ? { ...flagUsually, name: flag } : flag && { ...flagUsually, ...flag };
  return {
    sentence,
    as: as as As,
    type,
    schema,
    default: usual,
    range,
    isRequired: required !== undefined,
    isReloaded: false,
    table,
    flag: own,
    impliedBy,
    read: (section, name) => {
      const value = read(section, name);
      if (required === undefined) return (value ?? fallback) as Value;
      if (!section.has(name)) section.missing(name, required, own?.name);
      // The noted problem refuses the file, so only the section's checks see this value.
      return (value ?? fallback ?? "") as Value;
    },
  };
}

export type Check = (value: string) => string | undefined;

/** A non-empty string; `check` returns its problem, `to` converts a valid value. */
export function string<
  const O extends FieldOptions & {
    readonly default?: string;
    readonly check?: Check;
    readonly to?: (value: string) => string;
  },
>(sentence: string, options: O = {} as O): Field<Given<O, string>, AsOf<O>> {
  const to = options.to ?? ((value: string) => value);
  return declare(sentence, {
    ...options,
    type: "string",
    schema: TEXT,
    read: (section, name) => {
      const value = section.optionalString(name, options.check);
      return value && to(value);
    },
  });
}

export const TEXT = { type: "string", minLength: 1 } as const;

/** A required field with a single valid value. */
export function constant(wanted: string): Field<string, "*"> {
  const must = `must be ${JSON.stringify(wanted)}`;
  const check = (value: string) =>
    value === wanted ? undefined : `${must}, got ${JSON.stringify(value.slice(0, 80))}`;
  return declare(`Always \`${wanted}\`.`, {
    required: `is required and ${must}`,
    type: "string",
    schema: { const: wanted },
    read: (parent, name) => parent.optionalString(name, check),
  });
}

export function boolean<const O extends FieldOptions & { readonly default?: boolean }>(
  sentence: string,
  options: O = {} as O,
): Field<Given<O, boolean>, AsOf<O>> {
  return declare(sentence, {
    ...options,
    type: "boolean",
    schema: { type: "boolean" },
    placeholder: "true|false",
    fromFlag: (text) => {
      if (text === "true" || text === "false") return text === "true";
      throw new RangeError(`must be true or false, got ${JSON.stringify(text.slice(0, 80))}`);
    },
    read: (section, name) => section.boolean(name),
  });
}

export function choice<const T extends string, const O extends FieldOptions & { readonly default?: T }>(
  sentence: string,
  choices: readonly T[],
  options: O = {} as O,
): Field<Given<O, T>, AsOf<O>> {
  return declare(sentence, {
    ...options,
    type: `one of ${quoted(choices)}`,
    schema: { enum: choices },
    placeholder: choices.join("|"),
    fromFlag: (text) => chosen(text, choices),
    read: (section, name) => section.choice(name, choices),
  });
}

/** Throws RangeError with the flag's problem. */
export function chosen<T extends string>(text: string, choices: readonly T[]): T {
  const found = choices.find((one) => one === text);
  if (found !== undefined) return found;
  throw new RangeError(`must be one of ${choices.join(", ")}, got ${JSON.stringify(text.slice(0, 80))}`);
}

/**
 * A path, made absolute from the configuration's folder. `content` is checked before the start;
 * without it the file is for writing. `certificate` names the field with a key's certificate.
 */
export function file<const O extends FieldOptions & { readonly certificate?: string }>(
  sentence: string,
  content: FileContent | undefined,
  options: O = {} as O,
): Field<Given<O, string>, AsOf<O>> {
  return declare(sentence, {
    ...options,
    type: content === undefined || content === "text" ? "file" : `file (${content})`,
    schema: TEXT,
    placeholder: "FILE",
    fromFlag: fileOf,
    read: (section, name) => section.optionalFile(name, content, options.certificate),
  });
}

/**
 * Relative to the working directory, as in any command. Empty text stays empty, and the field
 * refuses it.
 */
export function fileOf(text: string): string {
  return text === "" ? text : resolve(text);
}

/** Sets a field, or removes it with null, if another field's flag is given. */
export function implied(name: string, value: unknown): FieldFlag {
  return { name, placeholder: "", read: () => value };
}

/** Formats words as code, for documentation. */
export function quoted(words: readonly string[]): string {
  return words.map((word) => `\`${word}\``).join(", ");
}
