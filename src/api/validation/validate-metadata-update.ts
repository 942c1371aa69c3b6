import { isDeepStrictEqual } from "node:util";
import { type FieldError, invalidValue } from "../field-errors.ts";
import type { ObjectMeta } from "../object-meta.ts";

export const FIELD_IS_IMMUTABLE = "field is immutable";

const IMMUTABLE_FIELDS = [
  "name",
  "namespace",
  "uid",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
] as const;

/** Checks an object's immutable metadata. The store detects outdated resourceVersions. */
export function validateMetadataUpdate(next: ObjectMeta, old: ObjectMeta): FieldError[] {
  const { generation = 0 } = next;
  const isDecremented = Number(generation) < Number(old.generation ?? 0);
  return [
    ...(isDecremented
      ? [invalidValue(["metadata", "generation"], generation, "must not be decremented")]
      : []),
    ...IMMUTABLE_FIELDS.filter((name) => !isDeepStrictEqual(next[name], old[name])).map((name) =>
      invalidValue(["metadata", name], next[name], FIELD_IS_IMMUTABLE),
    ),
  ];
}
