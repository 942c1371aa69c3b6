import { isRecord } from "@sluice/client/internal/api/status-body";
import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";

/** Fields of `before` that `after` lacks, outermost only. Expects lists of equal length. */
export function lostFields(before: unknown, after: unknown, path: FieldPath = []): FieldPath[] {
  if (Array.isArray(before) && Array.isArray(after)) {
    return before.flatMap((item, index) => lostFields(item, after[index], [...path, index]));
  }
  if (!isRecord(before) || !isRecord(after)) return [];
  return Object.entries(before).flatMap(([name, member]) =>
    Object.hasOwn(after, name) ? lostFields(member, after[name], [...path, name]) : [[...path, name]],
  );
}
