import type { Shape } from "./shape.ts";

/** Building blocks of shapes: the Go types of which Kubernetes' objects are made. */
export const text: Shape = { json: "string", go: "string" };
export const flag: Shape = { json: "bool", go: "bool" };
export const int32: Shape = { json: "integer", go: "int32" };
export const int64: Shape = { json: "integer", go: "int64" };
export const textMap: Shape = { json: "map", go: "map[string]string", values: text };
export const texts: Shape = { json: "array", go: "[]string", items: text };
/** A port by number or name (util/intstr). */
export const intOrString: Shape = { json: "integerOrString", go: "int32" };

/** A string type with a name of its own, as enums have: `named("Protocol")`. */
export function named(go: string): Shape {
  return { json: "string", go: `v1.${go}` };
}

/** `required`: the names of fields that our types have always. */
export function struct(
  go: string,
  fields: Readonly<Record<string, Shape>>,
  required: readonly string[] = [],
): Shape {
  return { json: "struct", go, fields, required: required.map((name) => [name, fields[name] as Shape]) };
}

export function listOf(items: Shape): Shape {
  return { json: "array", go: items.json === "struct" ? `[]v1.${items.go}` : `[]${items.go}`, items };
}
