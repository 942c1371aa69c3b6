import type { ApiObject } from "../api-object.ts";
import type { Shape } from "../validation/shape.ts";

/** One other version of a kind, and the version that is held. */
export interface VersionConversion {
  readonly shape: Shape;
  /** Defaults of that version alone, then the held version's fields. Expects a value of `shape`. */
  toHeld(object: ApiObject): ApiObject;
  fromHeld(object: ApiObject): ApiObject;
}
