import { isDeepStrictEqual } from "node:util";
import type { FeatureGates } from "../../config/feature-gates.ts";
import type { ApiObject } from "../api-object.ts";
import type { FieldError } from "../field-errors.ts";
import type { Shape } from "../validation/shape.ts";
import { validateMetadataUpdate } from "../validation/validate-metadata.ts";

/**
 * Kubernetes' rest strategy for one kind. Pure: returns new objects and alters none. A write runs
 * shape, conversion, defaults, prepare, validate, warnings, in this order.
 */
export interface Strategy<T extends ApiObject = ApiObject> {
  readonly kind: string;
  /** The stored version: `v1`, `networking.k8s.io/v1`. */
  readonly apiVersion: string;
  /** The plural in URLs. */
  readonly resource: string;
  readonly isNamespaced: boolean;
  readonly shape: Shape;
  /** Conversions for the other supported versions, by apiVersion. */
  readonly otherVersions: Readonly<Record<string, VersionConversion>>;
  /** Fills in absent fields; expects a value of the shape. */
  withDefaults(object: T): T;
  /** Clears fields that clients cannot set, and those whose feature gate is off. */
  prepareForCreate(object: T, gates: FeatureGates): T;
  validateCreate(object: T, gates: FeatureGates): FieldError[];
  prepareForUpdate(next: T, old: T, gates: FeatureGates): T;
  validateUpdate(next: T, old: T, gates: FeatureGates): FieldError[];
  /** Warning headers for the answer to a create. */
  warnings(object: T): string[];
}

/** The kind's API group; empty for core. */
export function groupOf({ apiVersion }: Pick<Strategy, "apiVersion">): string {
  return apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
}

/** Converts another version of a kind to the stored version. */
export interface VersionConversion {
  readonly shape: Shape;
  /** Applies that version's own defaults, then converts. Expects a value of `shape`. */
  toHeld(object: ApiObject): ApiObject;
}

/** A new object's generation. */
export function withFirstGeneration<T extends ApiObject>(object: T): T {
  return { ...object, metadata: { ...object.metadata, generation: 1 } };
}

/**
 * Increments the generation if the spec changed. Expects the old generation in `next`, as
 * `prepareUpdate` sets it.
 */
export function withNextGeneration<T extends ApiObject>(next: T, old: T): T {
  const generation = Number(old.metadata.generation ?? 0);
  const isChanged = !isDeepStrictEqual(meaningOf(next.spec), meaningOf(old.spec));
  return isChanged ? { ...next, metadata: { ...next.metadata, generation: generation + 1 } } : next;
}

/** Empty lists and objects equal absent ones (apimachinery's semantic equality). */
function meaningOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(meaningOf);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, member]) => {
    const meaning = meaningOf(member);
    return meaning === undefined || meaning === null ? [] : [[name, meaning] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

type Given<T extends ApiObject> = Pick<
  Strategy<T>,
  "kind" | "apiVersion" | "resource" | "isNamespaced" | "shape"
> &
  Partial<Strategy<T>> & { validate(object: T): FieldError[] };

/**
 * A kind with equal checks on create and update and no changes by the server, except those in
 * `given`.
 */
export function plainStrategy<T extends ApiObject>({ validate, ...given }: Given<T>): Strategy<T> {
  return {
    otherVersions: {},
    withDefaults: (object) => object,
    prepareForCreate: (object) => object,
    validateCreate: validate,
    prepareForUpdate: (next) => next,
    validateUpdate: (next, old) => [
      ...validateMetadataUpdate(next.metadata, old.metadata),
      ...validate(next),
    ],
    warnings: () => [],
    ...given,
  };
}

/** The new object with the stored status. */
export function keepingStatus<T extends ApiObject>(next: T, old: T): T {
  const { status: _, ...rest } = next;
  return { ...rest, ...(old.status !== undefined && { status: old.status }) } as T;
}
