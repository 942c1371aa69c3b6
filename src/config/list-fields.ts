import type { Field } from "@sluice/client/internal/config/field";
import {
  type AsOf,
  type Check,
  declare,
  type FieldOptions,
  type Given,
  quoted,
  TEXT,
} from "@sluice/client/internal/config/fields";

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

/** Files or folders; their users read them. */
export function files(sentence: string): Field<readonly string[], "*"> {
  return declare(sentence, {
    default: [],
    type: "list of files",
    schema: { type: "array", items: TEXT },
    read: (section, name) => section.files(name),
  });
}
