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

/** A time as RFC 3339 writes it (apimachinery's metav1.Time). */
export const time: Shape = { json: "string", go: "string", format: "time" };

/** `required`: the names of fields that our types have always. `embedded`: of fields, the struct by which Go has them. */
export function struct(
  go: string,
  fields: Readonly<Record<string, Shape>>,
  required: readonly string[] = [],
  embedded: Readonly<Record<string, string>> = {},
): Shape {
  const always = required.map((name) => [name, fields[name] as Shape] as const);
  return { json: "struct", go, fields, required: always, embedded };
}

export function listOf(items: Shape): Shape {
  return { json: "array", go: items.json === "struct" ? `[]v1.${items.go}` : `[]${items.go}`, items };
}
