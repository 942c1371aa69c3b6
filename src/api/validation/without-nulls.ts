import type { Shape } from "./shape.ts";

/**
 * What Go's decoder makes of nulls. A null member means "not set" (`creationTimestamp: null` stands in every manifest that kubectl
 * generates); a null in a list is an empty entry. Lists that are not known keep theirs. Expects a value of the shape.
 */
export function withoutNulls(
  value: Readonly<Record<string, unknown>>,
  shape: Shape | undefined,
): Record<string, unknown> {
  const entries = Object.entries(value).filter(([, member]) => member !== null && member !== undefined);
  return Object.fromEntries(
    entries.map(([name, member]) => [name, cleaned(member, memberShape(shape, name))]),
  );
}

function cleaned(value: unknown, shape: Shape | undefined): unknown {
  if (Array.isArray(value)) {
    const items = shape?.json === "array" ? shape.items : undefined;
    return value.map((item) => (item === null && items ? emptyOf(items) : cleaned(item, items)));
  }
  if (typeof value !== "object" || value === null) return value;
  return withoutNulls(value as Record<string, unknown>, shape);
}

function memberShape(shape: Shape | undefined, name: string): Shape | undefined {
  if (shape?.json === "map") return shape.values;
  return shape?.json === "struct" && Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
}

function emptyOf({ json }: Shape): unknown {
  switch (json) {
    case "string":
      return "";
    case "bool":
      return false;
    case "integer":
    case "integerOrString":
      return 0;
    case "array":
      return [];
    case "map":
    case "struct":
      return {};
  }
}
