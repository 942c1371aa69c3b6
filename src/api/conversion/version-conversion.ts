import type { ApiObject } from "../api-object.ts";
import type { Shape } from "../validation/shape.ts";

/** Converts another version of a kind to the held one. */
export interface VersionConversion {
  readonly shape: Shape;
  /** Applies that version's own defaults, then converts. Expects a value of `shape`. */
  toHeld(object: ApiObject): ApiObject;
}
