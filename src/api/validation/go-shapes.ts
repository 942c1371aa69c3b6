import type { Shape } from "./shape.ts";

/** Building blocks of shapes: the Go types in Kubernetes' objects. */
export const text: Shape = { json: "string", go: "string" };
export const flag: Shape = { json: "bool", go: "bool" };
export const int32: Shape = { json: "integer", go: "int32" };
export const int64: Shape = { json: "integer", go: "int64" };
export const textMap: Shape = { json: "map", go: "map[string]string", values: text };
export const texts: Shape = { json: "array", go: "[]string", items: text };
/** A port by number or name (util/intstr). */
export const intOrString: Shape = { json: "integerOrString", go: "int32" };

/** A named string type, as for enums: `named("Protocol")`. */
export function named(go: string): Shape {
  return { json: "string", go: `v1.${go}` };
}

/** An RFC 3339 time (apimachinery's metav1.Time). */
export const time: Shape = { json: "string", go: "string", format: "time" };

/**
 * `required` names the fields that our types always have. `embedded` maps fields to the embedded
 * struct that declares them in Go.
 */
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
