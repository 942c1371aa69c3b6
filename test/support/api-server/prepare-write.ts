import type { ApiObject } from "../../../src/api/api-object.ts";
import { type prepareUpdate, withServerFields } from "../../../src/api/strategy/read-object.ts";
import type { Strategy } from "../../../src/api/strategy/strategy.ts";
import type { FeatureGates } from "../../../src/config/feature-gates.ts";
import { hasStatus, keepingSpec, statusUpdateErrors } from "./status-strategies.ts";

export type PreparedWrite = ReturnType<typeof prepareUpdate>;

/** Expects `object` with defaults, after admission. */
export function prepareCreate(strategy: Strategy, object: ApiObject, gates: FeatureGates): PreparedWrite {
  const prepared = strategy.prepareForCreate(object, gates);
  const errors = strategy.validateCreate(prepared, gates);
  return { object: prepared, errors, warnings: strategy.warnings(prepared) };
}

/** Prepares a PUT or PATCH of `/status`. Undefined if the kind has none. */
export function prepareStatusUpdate(
  { kind }: Pick<Strategy, "kind">,
  next: ApiObject,
  old: ApiObject,
): PreparedWrite | undefined {
  if (!hasStatus(kind)) return undefined;
  const object = keepingSpec(withServerFields(next, old), old);
  return { object, errors: statusUpdateErrors(object, old), warnings: [] };
}
