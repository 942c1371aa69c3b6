import type { FeatureGates } from "../../config/feature-gates.ts";
import type { ApiObject } from "../api-object.ts";
import type { VersionConversion } from "../conversion/version-conversion.ts";
import type { FieldError } from "../field-errors.ts";
import type { Shape } from "../validation/shape.ts";

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
