// packages/client/config: tables of fields, YAML as kubectl reads it, named files, quantities, the
// version

import type { Section } from "./section.ts";

/** A value's JSON Schema (draft-07). */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A `sluice serve` flag that sets a field of the file. */
export interface FieldFlag {
  /** Without dashes. */
  readonly name: string;
  /** The value's name in help: `FILE`. */
  readonly placeholder: string;
  readonly choices?: readonly string[] | undefined;
  /**
   * Parses the flag to the file's form; undefined keeps the field, null removes it. Throws
   * RangeError with the problem.
   */
  readonly read: (text: string) => unknown;
}

/**
 * One declared field. Its reader, JSON Schema, flags, documentation and TypeScript type derive from
 * it.
 */
export interface Field<Value = unknown, As extends string = string> {
  /** Describes the field; ends with a full stop. */
  readonly sentence: string;
  /** The property's name in the parsed configuration; `*` stands for the name in the file. */
  readonly as: As;
  /** The type in words, for documentation. */
  readonly type: string;
  readonly schema: JsonSchema;
  /** In the file's form; undefined if absence has a meaning. */
  readonly default: unknown;
  /** In words; undefined without a range. */
  readonly range: string | undefined;
  readonly isRequired: boolean;
  /** A running gateway reads this field and those below it again. */
  readonly isReloaded: boolean;
  /** The fields of the section, or of each section in a list. */
  readonly table: Table | undefined;
  readonly flag: FieldFlag | undefined;
  /** Flags of other fields that also set this one. */
  readonly impliedBy: readonly FieldFlag[];
  readonly read: (section: Section, name: string) => Value;
}

type Fields = Readonly<Record<string, Field>>;

type NameOf<Name extends string, As extends string> = As extends `*${infer Unit}` ? `${Name}${Unit}` : As;

/** The parsed values of fields. */
export type ValuesOf<F extends Fields> = {
  readonly [Name in keyof F & string as NameOf<Name, F[Name]["as"]>]: ReturnType<F[Name]["read"]>;
};

/** The fields of one section. */
export interface Table<Value = unknown> {
  readonly fields: Fields;
  /**
   * The flags of this optional section count only if the file has the section, or this field has a
   * flag.
   */
  readonly keyField: string | undefined;
  /**
   * The problem with a flag that therefore has no effect; undefined ignores it, as kube-apiserver
   * does.
   */
  readonly orphanFlag: (name: string) => string | undefined;
  /** kube-apiserver's flags that set nothing here. */
  readonly otherFlags: readonly DescribedFlag[];
  readonly read: (section: Section) => Value;
}

export interface DescribedFlag extends FieldFlag {
  readonly sentence: string;
}

export type ValueOf<T extends Table> = ReturnType<T["read"]>;

interface TableOptions<F extends Fields> {
  readonly keyField?: keyof F & string;
  readonly orphanFlag?: (name: string) => string | undefined;
  readonly otherFlags?: readonly DescribedFlag[];
}

export function table<const F extends Fields>(
  fields: F,
  { keyField, orphanFlag = () => undefined, otherFlags = [] }: TableOptions<F> = {},
): Table<ValuesOf<F>> {
  const read = (section: Section): ValuesOf<F> => {
    const values = Object.fromEntries(
      Object.entries<Field>(fields).map(([name, field]) => [
        field.as.replace("*", name),
        field.read(section, name),
      ]),
    ) as ValuesOf<F>;
    section.finish();
    return values;
  };
  return { fields, keyField, orphanFlag, otherFlags, read };
}

/** Adds rules that span fields; `check` notes problems. */
export function checked<Value>(
  fields: Table<Value>,
  check: (values: Value, section: Section) => void,
): Table<Value> {
  return shaped(fields, (values, section) => {
    check(values, section);
    return values;
  });
}

/** Converts the read values into another shape. */
export function shaped<Value, Shape>(
  { read, ...rest }: Table<Value>,
  shape: (values: Value, section: Section) => Shape,
): Table<Shape> {
  return { ...rest, read: (section) => shape(read(section), section) };
}

/** The same fields, without their flags. */
export function unflagged<Value>(original: Table<Value>): Table<Value> {
  const fields = Object.entries<Field>(original.fields).map(([name, field]) => [
    name,
    { ...field, flag: undefined, impliedBy: [], table: field.table && unflagged(field.table) },
  ]);
  return { ...original, fields: Object.fromEntries(fields), keyField: undefined, otherFlags: [] };
}

/** A table's field and its path: `["timeouts", "idle"]`; sections of a list are at `[]`. */
interface PlacedField {
  readonly path: readonly string[];
  readonly field: Field;
}

/** Every field in the table, sections before their fields. */
export function* placedFields(root: Table, path: readonly string[] = []): Generator<PlacedField> {
  for (const [name, field] of Object.entries(root.fields)) {
    const place = [...path, name];
    yield { path: place, field };
    if (field.table !== undefined) yield* placedFields(field.table, place);
  }
}
