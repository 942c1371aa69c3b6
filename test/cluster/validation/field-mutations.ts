import { strategies } from "../../../src/api/strategy/strategies.ts";
import { kindShape } from "../../../src/api/validation/kubernetes-shapes.ts";
import type { Shape } from "../../../src/api/validation/shape.ts";
import { goodObjects } from "./generated-objects.ts";

/** What is done to a field: another type of JSON, a name beside it that its type does not have, a value of its type. */
export type MutationClass = "wrong type" | "unknown name" | "own type";

export interface FieldMutation {
  readonly kind: string;
  readonly of: MutationClass;
  readonly path: readonly Step[];
  readonly object: object;
}

type Step = string | number;

interface Place {
  readonly path: readonly Step[];
  readonly shape: Shape;
  /** `Container.args`; the field of a type is tried once in each kind, but in a Pod at every place. */
  readonly field: string;
}

/** Mutations of every field of every kind, at every depth, each of a valid object. The same in every run. */
export function* fieldMutations(): Generator<FieldMutation> {
  for (const { kind, apiVersion } of strategies) {
    const good = goodObjects[kind];
    if (good === undefined) throw new Error(`there is no valid ${kind}`);
    const tried = new Set<string>();
    for (const place of placesOf(kindShape(apiVersion, kind), [], kind)) {
      if (isOfEnvelope(place.path) || (kind !== "Pod" && tried.has(place.field))) continue;
      tried.add(place.field);
      yield* mutationsOf(kind, good, place);
    }
  }
}

/** apiVersion and kind choose what is read at all. */
function isOfEnvelope(path: readonly Step[]): boolean {
  return path.length === 0 || (path.length === 1 && (path[0] === "apiVersion" || path[0] === "kind"));
}

function* placesOf(shape: Shape, path: readonly Step[], field: string): Generator<Place> {
  yield { path, shape, field };
  if (shape.json === "array") yield* placesOf(shape.items, [...path, 0], `${field}[]`);
  if (shape.json === "map") yield* placesOf(shape.values, [...path, "key"], `${field}{}`);
  if (shape.json !== "struct") return;
  for (const [name, member] of Object.entries(shape.fields))
    yield* placesOf(member, [...path, name], `${shape.go}.${name}`);
}

function* mutationsOf(kind: string, good: object, { path, shape }: Place): Generator<FieldMutation> {
  const at = (of: MutationClass, target: readonly Step[], value: unknown): FieldMutation => ({
    kind,
    of,
    path: target,
    object: withValue(good, target, value),
  });
  const others = OTHER_VALUES.filter((value) => !mayBe(value, shape));
  if (others.length > 0) yield at("wrong type", path, others[hashOf(path) % others.length]);
  if (shape.json === "struct") yield at("unknown name", [...path, "noSuchField"], 1);
  // Another namespace than the URL's is refused for that.
  if (path.join(".") !== "metadata.namespace") yield at("own type", path, fitting(shape));
}

const OTHER_VALUES: readonly unknown[] = [true, 5, "a text", ["a"], { a: 1 }, 1.5];

/** Whether a shape takes this type of JSON. What a text has to look like is judged by none of these. */
function mayBe(value: unknown, shape: Shape): boolean {
  switch (shape.json) {
    case "any":
      return true;
    case "string":
      return shape.format === undefined && typeof value === "string";
    case "bool":
      return typeof value === "boolean";
    case "integer":
      return Number.isInteger(value);
    case "integerOrString":
      return Number.isInteger(value) || typeof value === "string";
    case "quantity":
      return typeof value === "number";
    case "array":
      return Array.isArray(value);
    case "bytes":
      return Array.isArray(value);
    case "map":
    case "struct":
      return typeof value === "object" && !Array.isArray(value);
  }
}

function fitting(shape: Shape): unknown {
  switch (shape.json) {
    case "string":
      if (shape.format === "time") return "2026-11-23T01:02:03Z";
      return shape.format === "microtime" ? "2026-11-23T01:02:03.000001Z" : "x-1";
    case "bool":
      return true;
    case "integer":
      return 1;
    case "integerOrString":
      return 80;
    case "quantity":
      return "1";
    case "bytes":
      return "YQ==";
    case "array":
      return [fitting(shape.items)];
    case "map":
      return { key: fitting(shape.values) };
    case "struct":
    case "any":
      return {};
  }
}

/** A copy with the value at a path; what is missing on the way there is made. */
function withValue<T>(whole: T, path: readonly Step[], value: unknown): T {
  const [step, ...rest] = path;
  if (step === undefined) return value as T;
  const copy = (typeof step === "number" ? [...((whole ?? []) as unknown[])] : { ...whole }) as Record<
    Step,
    unknown
  >;
  copy[step] = withValue(copy[step], rest, value);
  return copy as T;
}

/** Which of the wrong values a field gets: any, but always the same. */
function hashOf(path: readonly Step[]): number {
  let hash = 0;
  for (const character of path.join(".")) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 1_000_003;
  return hash;
}
