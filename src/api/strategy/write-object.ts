import type { FeatureGates } from "../../config/feature-gates.ts";
import type { ApiObject } from "../api-object.ts";
import type { FieldError } from "../field-errors.ts";
import type { ObjectMeta } from "../object-meta.ts";
import type { Strategy } from "./strategy.ts";

/** The object to store, unless there are errors. */
export interface PreparedWrite {
  readonly object: ApiObject;
  readonly errors: readonly FieldError[];
  readonly warnings: readonly string[];
}

/** Expects `next` with defaults, after admission. Takes server-owned fields from `old`. */
export function prepareUpdate(
  strategy: Strategy,
  next: ApiObject,
  old: ApiObject,
  gates: FeatureGates,
): PreparedWrite {
  const prepared = strategy.prepareForUpdate(withServerFields(next, old), old, gates);
  const errors = strategy.validateUpdate(prepared, old, gates);
  return { object: prepared, errors, warnings: [] };
}

/** rest.BeforeUpdate: an absent uid is kept from `old`; clients never set times and generation. */
export function withServerFields(next: ApiObject, old: ApiObject): ApiObject {
  const serverFields = ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];
  const kept = Object.fromEntries(
    serverFields.filter((name) => old.metadata[name] !== undefined).map((name) => [name, old.metadata[name]]),
  );
  const given = Object.entries(next.metadata).filter(([name]) => !serverFields.includes(name));
  const uid = next.metadata.uid || old.metadata.uid;
  const metadata = { ...Object.fromEntries(given), ...kept, ...(uid !== undefined && { uid }) } as ObjectMeta;
  return { ...next, metadata };
}
