import type { Shape } from "./shape.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Handles nulls as Go's decoder does: a null member is absent, a null in a list is an empty entry;
 * unknown lists keep theirs. Expects a valid shape; returns values without nulls unchanged.
 */
export function withoutNulls<T extends Fields>(value: T, shape: Shape | undefined): T {
  return cleanedFields(value, shape, false) as T;
}

/** Also fills in fields that our types always have with Go's zero values. */
export function asDecoded<T extends Fields>(value: T, shape: Shape | undefined): T {
  return cleanedFields(value, shape, true) as T;
}

function cleaned(value: unknown, shape: Shape | undefined, fills: boolean): unknown {
  if (typeof value !== "object" || value === null) return value;
  return Array.isArray(value)
    ? cleanedItems(value, shape?.json === "array" ? shape.items : undefined, fills)
    : cleanedFields(value as Fields, shape, fills);
}

function cleanedItems(
  list: readonly unknown[],
  shape: Shape | undefined,
  fills: boolean,
): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [index, item] of list.entries()) {
    const next = item === null && shape ? emptyOf(shape, fills) : cleaned(item, shape, fills);
    if (next === item) continue;
    copy ??= [...list];
    copy[index] = next;
  }
  return copy ?? list;
}

function cleanedFields(value: Fields, shape: Shape | undefined, fills: boolean): Fields {
  let copy: Record<string, unknown> | undefined;
  for (const name of Object.keys(value)) {
    const member = value[name];
    const next = cleaned(member, memberShape(shape, name), fills);
    if (next === member && member !== null && member !== undefined) continue;
    copy ??= { ...value };
    if (next === null || next === undefined) delete copy[name];
    else copy[name] = next;
  }
  if (!fills || shape?.json !== "struct") return copy ?? value;
  for (const [name, field] of shape.required) {
    if ((copy ?? value)[name] !== undefined) continue;
    copy ??= { ...value };
    copy[name] = emptyOf(field, fills);
  }
  return copy ?? value;
}

function memberShape(shape: Shape | undefined, name: string): Shape | undefined {
  if (shape?.json === "map") return shape.values;
  return shape?.json === "struct" && Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
}

function emptyOf(shape: Shape, fills: boolean): unknown {
  switch (shape.json) {
    case "string":
      return "";
    case "bool":
      return false;
    case "integer":
    case "integerOrString":
      return 0;
    case "bytes":
      return "";
    case "quantity":
      return "0";
    case "any":
      return null;
    case "array":
      return [];
    case "map":
    case "struct":
      return cleanedFields({}, shape, fills);
  }
}
