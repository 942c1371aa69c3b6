import type { Section } from "./section.ts";

/** JSON Schema draft-07 of one value. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A flag of `sluice serve` that sets a field of the file. */
export interface FieldFlag {
  /** Without the dashes. */
  readonly name: string;
  /** Stands for the value in help: `FILE`. */
  readonly placeholder: string;
  readonly choices?: readonly string[] | undefined;
  /** The field's value in the file's form; undefined leaves the field, null removes it. Throws RangeError with the problem. */
  readonly read: (text: string) => unknown;
}

/** One declared field: reader, JSON Schema, flags, documentation and TypeScript type derive from it. */
export interface Field<Value = unknown, As extends string = string> {
  /** Ends with a full stop. */
  readonly sentence: string;
  /** Its name among the values that are read; `*` stands for the name in the file. */
  readonly as: As;
  /** In words, for documentation. */
  readonly type: string;
  readonly schema: JsonSchema;
  /** In the file's form; undefined where absence has a meaning of its own. */
  readonly default: unknown;
  /** In words; undefined without a range. */
  readonly range: string | undefined;
  readonly isRequired: boolean;
  /** A running gateway takes it, and what is below it, from a file that is read again. */
  readonly isReloaded: boolean;
  /** The fields of a section, or of each section in a list. */
  readonly table: Table | undefined;
  readonly flag: FieldFlag | undefined;
  /** Flags of other fields that also set this one. */
  readonly impliedBy: readonly FieldFlag[];
  readonly read: (section: Section, name: string) => Value;
}

export type Fields = Readonly<Record<string, Field>>;

type NameOf<Name extends string, As extends string> = As extends `*${infer Unit}` ? `${Name}${Unit}` : As;

/** What reading the fields gives. */
export type ValuesOf<F extends Fields> = {
  readonly [Name in keyof F & string as NameOf<Name, F[Name]["as"]>]: ReturnType<F[Name]["read"]>;
};

/** The fields of one section. */
export interface Table<Value = unknown> {
  readonly fields: Fields;
  /** The flags of this optional section take effect only where the file has the section, or this field has a flag. */
  readonly keyField: string | undefined;
  /** What is wrong with a flag that has no effect for this reason; undefined where it is ignored, as kube-apiserver does. */
  readonly orphanFlag: (name: string) => string | undefined;
  /** Flags that kube-apiserver has and that set nothing here. */
  readonly otherFlags: readonly DescribedFlag[];
  readonly read: (section: Section) => Value;
}

export interface DescribedFlag extends FieldFlag {
  readonly sentence: string;
}

export type ValueOf<T extends Table> = ReturnType<T["read"]>;

export interface TableOptions<F extends Fields> {
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

/** The same fields with rules across them; `check` notes problems. */
export function checked<Value>(
  fields: Table<Value>,
  check: (values: Value, section: Section) => void,
): Table<Value> {
  return shaped(fields, (values, section) => {
    check(values, section);
    return values;
  });
}

/** The same fields, read into another shape. */
export function shaped<Value, Shape>(
  { read, ...rest }: Table<Value>,
  shape: (values: Value, section: Section) => Shape,
): Table<Shape> {
  return { ...rest, read: (section) => shape(read(section), section) };
}

/** The same fields at a place that flags do not set. */
export function unflagged<Value>(original: Table<Value>): Table<Value> {
  const fields = Object.entries<Field>(original.fields).map(([name, field]) => [
    name,
    { ...field, flag: undefined, impliedBy: [], table: field.table && unflagged(field.table) },
  ]);
  return { ...original, fields: Object.fromEntries(fields), keyField: undefined, otherFlags: [] };
}

/** A table's field and its place: `["timeouts", "idle"]`; a list's sections are at `[]`. */
export interface PlacedField {
  readonly path: readonly string[];
  readonly field: Field;
}

/** Every field below the table, sections before their fields. */
export function* placedFields(root: Table, path: readonly string[] = []): Generator<PlacedField> {
  for (const [name, field] of Object.entries(root.fields)) {
    const place = [...path, name];
    yield { path: place, field };
    if (field.table !== undefined) yield* placedFields(field.table, place);
  }
}
