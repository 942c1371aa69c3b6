import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { goBase64Problem, goTimeProblem } from "./go-time.ts";

const FORM = /^[+-]?\d*(?:\.\d*)?(?<suffix>[eEinumkKMGTP]+(?:[-+]\d*|\d*)|[-+]\d*|)$/;
const SUFFIX = /^(?:[numkMGTPE]?|[KMGTPE]i|[eE][-+]?\d+)$/;

/**
 * The error of Go's Quantity (apimachinery, pkg/api/resource) for a JSON value; undefined if it is
 * valid.
 */
function goQuantityProblem(value: unknown): string | undefined {
  const text = typeof value === "string" ? value.trim() : JSON.stringify(value);
  const suffix = text === "" ? undefined : FORM.exec(text)?.groups?.suffix;
  if (suffix === undefined) {
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  }
  return SUFFIX.test(suffix) ? undefined : "unable to parse quantity's suffix";
}

/** The JSON that a Go field accepts. `go` is the type's name in Go's error messages. */
export type Shape =
  | { readonly json: "bool"; readonly go: string }
  | { readonly json: "string"; readonly go: string; readonly format?: "time" | "microtime" }
  | { readonly json: "integer"; readonly go: "int32" | "int64" | "uint8" }
  /** Base64, or a list of numbers. */
  | { readonly json: "bytes"; readonly go: "[]uint8" }
  | { readonly json: "quantity" | "any"; readonly go: string }
  | { readonly json: "integerOrString"; readonly go: "int32" }
  | { readonly json: "array"; readonly go: string; readonly items: Shape }
  | { readonly json: "map"; readonly go: string; readonly values: Shape }
  | {
      readonly json: "struct";
      readonly go: string;
      /** The Go package in messages; defaults to `v1`. */
      readonly package?: string;
      readonly fields: Readonly<Record<string, Shape>>;
      /**
       * Maps fields to the embedded struct that declares them, whose name Go's messages contain.
       */
      readonly embedded: Readonly<Record<string, string>>;
      /** Fields that every object of the kind has, in our types as in Go's. */
      readonly required: readonly (readonly [name: string, shape: Shape])[];
    };

const UINT8: Shape = { json: "integer", go: "uint8" };

interface ShapeProblem {
  readonly path: FieldPath;
  readonly message: string;
}

/** The lowest valid number, and the first above the highest. */
const integerBounds = {
  uint8: [0, 256],
  int32: [-(2 ** 31), 2 ** 31],
  int64: [-(2 ** 63), 2 ** 63],
} as const;

/** The shape mismatch that Go's decoder reports, in its words. Ignores unknown fields and nulls. */
export function shapeProblem(value: unknown, shape: Shape): ShapeProblem | undefined {
  const found: { first?: ShapeProblem } = {};
  return visit(value, shape, { path: [], struct: "", field: "" }, found) ?? found.first;
}

/**
 * Whether the value has no mismatch: the fast check for objects that an API server has validated.
 */
export function isShaped(value: unknown, shape: Shape): boolean {
  if (value === null || value === undefined) return true;
  if (!isOfShape(value, shape)) return false;
  switch (shape.json) {
    case "array":
      return (value as unknown[]).every((item) => isShaped(item, shape.items));
    case "map":
      return Object.values(value).every((item) => isShaped(item, shape.values));
    case "struct":
      return Object.entries(shape.fields).every(
        ([name, field]) =>
          !Object.hasOwn(value, name) || isShaped((value as Record<string, unknown>)[name], field),
      );
    default:
      return true;
  }
}

interface Place {
  readonly path: FieldPath;
  /** Go names the innermost struct, and the field path from the root without indexes. */
  readonly struct: string;
  readonly field: string;
}

/**
 * A type with its own decoder, such as time, stops the decoding if it fails; of other mismatches Go
 * reports the first at the end.
 */
function visit(
  value: unknown,
  shape: Shape,
  place: Place,
  found: { first?: ShapeProblem },
): ShapeProblem | undefined {
  if (value === null || value === undefined) return undefined;
  if (!isOfShape(value, shape)) {
    found.first ??= { path: place.path, message: mismatchText(value, shape, place) };
    return shape.json === "integerOrString" || (shape.json === "string" && shape.format !== undefined)
      ? { path: place.path, message: mismatchText(value, shape, place) }
      : undefined;
  }
  const misread = readsItself(value, shape);
  if (misread !== undefined) return { path: place.path, message: misread };
  if (shape.json === "bytes" && typeof value === "string") {
    const message = goBase64Problem(value);
    if (message !== undefined) found.first ??= { path: place.path, message };
  }
  if ((shape.json === "array" || shape.json === "bytes") && Array.isArray(value)) {
    const items = shape.json === "bytes" ? UINT8 : shape.items;
    return firstProblem(value.entries(), (index, item) =>
      visit(item, items, { ...place, path: [...place.path, index] }, found),
    );
  }
  if (shape.json === "map") {
    return firstProblem(Object.entries(value), (key, item) =>
      visit(item, shape.values, { ...place, path: [...place.path, key] }, found),
    );
  }
  if (shape.json === "struct") {
    return firstProblem(Object.entries(value), (name, item) => {
      const field = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
      const path = [...place.path, name];
      const names = [place.field, shape.embedded[name] ?? "", name].filter((part) => part !== "");
      return field && visit(item, field, { path, struct: shape.go, field: names.join(".") }, found);
    });
  }
  return undefined;
}

/** The error of a type with its own JSON decoder. */
function readsItself(value: unknown, shape: Shape): string | undefined {
  if (shape.json === "quantity") return goQuantityProblem(value);
  return shape.json === "string" && shape.format !== undefined
    ? goTimeProblem(value as string, shape.format)
    : undefined;
}

function firstProblem<Key>(
  entries: Iterable<[Key, unknown]>,
  check: (key: Key, value: unknown) => ShapeProblem | undefined,
): ShapeProblem | undefined {
  for (const [key, value] of entries) {
    const problem = check(key, value);
    if (problem) return problem;
  }
  return undefined;
}

function isOfShape(value: unknown, shape: Shape): boolean {
  switch (shape.json) {
    case "string":
      return typeof value === "string";
    case "bool":
      return typeof value === "boolean";
    case "bytes":
      return typeof value === "string" || Array.isArray(value);
    case "quantity":
    case "any":
      return true;
    case "integer":
      return isInteger(value, shape.go);
    case "integerOrString":
      return typeof value === "string" || isInteger(value, shape.go);
    case "array":
      return Array.isArray(value);
    case "map":
    case "struct":
      return typeof value === "object" && !Array.isArray(value);
  }
}

function isInteger(value: unknown, type: keyof typeof integerBounds): boolean {
  const [least, end] = integerBounds[type];
  return Number.isInteger(value) && Number(value) >= least && Number(value) < end;
}

function mismatchText(value: unknown, shape: Shape, { struct, field }: Place): string {
  const goType = shape.json === "struct" ? `${shape.package ?? "v1"}.${shape.go}` : shape.go;
  const target =
    struct === "" ? `Go value of type ${goType}` : `Go struct field ${struct}.${field} of type ${goType}`;
  return `json: cannot unmarshal ${jsonTypeOf(value, shape)} into ${target}`;
}

function jsonTypeOf(value: unknown, shape: Shape): string {
  if (typeof value === "boolean") return "bool";
  // Shows a number of the wrong kind, because its type alone would not explain the refusal.
  if (typeof value === "number") return shape.json.startsWith("integer") ? `number ${value}` : "number";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

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
