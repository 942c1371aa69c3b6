import type { FeatureGates } from "../../config/feature-gates.ts";
import type { ApiObject } from "../api-object.ts";
import type { VersionConversion } from "../conversion/version-conversion.ts";
import type { FieldError } from "../field-errors.ts";
import type { Shape } from "../validation/shape.ts";

/**
 * Kubernetes' rest strategy of one kind. Pure: objects are never altered, a changed one is new. Order
 * of a write: shape, conversion, defaults, prepare, validate, warnings.
 */
export interface Strategy<T extends ApiObject = ApiObject> {
  readonly kind: string;
  /** The version in which objects are held: `v1`, `networking.k8s.io/v1`. */
  readonly apiVersion: string;
  /** The plural of URLs. */
  readonly resource: string;
  readonly isNamespaced: boolean;
  readonly shape: Shape;
  /** Versions that are read and written by conversion, by their apiVersion. */
  readonly otherVersions: Readonly<Record<string, VersionConversion>>;
  /** Fills in what is absent; expects a value of the shape. */
  withDefaults(object: T): T;
  /** Clears what a client may not set, and fields whose feature gate is off. */
  prepareForCreate(object: T, gates: FeatureGates): T;
  validateCreate(object: T, gates: FeatureGates): FieldError[];
  prepareForUpdate(next: T, old: T, gates: FeatureGates): T;
  validateUpdate(next: T, old: T, gates: FeatureGates): FieldError[];
  /** Texts for the Warning headers of the answer to a create. */
  warnings(object: T): string[];
  /** Absent: the kind has no `/status`. */
  readonly status?: StatusStrategy<T>;
}

/** Writes to `/status`: everything else stays as it was. */
export interface StatusStrategy<T extends ApiObject = ApiObject> {
  prepareForUpdate(next: T, old: T, gates: FeatureGates): T;
  validateUpdate(next: T, old: T, gates: FeatureGates): FieldError[];
}

/** The group of the kind's API; empty for the core's. */
export function groupOf({ apiVersion }: Pick<Strategy, "apiVersion">): string {
  return apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
}
