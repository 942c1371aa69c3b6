import { isDeepStrictEqual } from "node:util";
import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type FieldError, forbiddenField, invalidValue, required } from "../field-errors.ts";
import type { Container, Pod, PodSpec } from "../objects.ts";

const UPDATABLE_FIELDS = [
  "`spec.containers[*].image`",
  "`spec.initContainers[*].image`",
  "`spec.activeDeadlineSeconds`",
  "`spec.tolerations` (only additions to existing tolerations)",
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
].join(",");

/** Checks a pod's immutable fields: nearly all of them. Expects both pods with defaults. */
export function podSpecUpdateErrors(next: Pod, old: Pod): FieldError[] {
  const lists = (["containers", "initContainers"] as const).flatMap((name) =>
    containerListErrors(next.spec[name] ?? [], old.spec[name] ?? [], ["spec", name]),
  );
  if (lists.length > 0) return lists;
  const deadlines = deadlineErrors(next.spec.activeDeadlineSeconds, old.spec.activeDeadlineSeconds);
  if (deadlines.length > 0) return deadlines;
  const tolerations = tolerationErrors(listOf(next.spec.tolerations), listOf(old.spec.tolerations));
  const isSame = isDeepStrictEqual(withUpdatableFieldsOf(next.spec, old.spec), old.spec);
  // The API server appends a diff of Go structs, which no client reads.
  const sentence = `pod updates may not change fields other than ${UPDATABLE_FIELDS}\n`;
  return [...tolerations, ...(isSame ? [] : [forbiddenField(["spec"], sentence)])];
}

function containerListErrors(
  next: readonly Container[],
  old: readonly Container[],
  path: FieldPath,
): FieldError[] {
  if (next.length !== old.length) {
    return [forbiddenField(path, "pod updates may not add or remove containers")];
  }
  return next.flatMap(({ image = "" }, index) => (image === "" ? [required([...path, index, "image"])] : []));
}

function deadlineErrors(next: unknown, old: unknown): FieldError[] {
  const path = ["spec", "activeDeadlineSeconds"];
  if (typeof next !== "number") {
    const sentence = "must not update from a positive integer to nil value";
    return old === undefined ? [] : [invalidValue(path, next, sentence)];
  }
  if (next < 0 || next > 2 ** 31 - 1) {
    return [invalidValue(path, next, `must be between 0 and ${2 ** 31 - 1}, inclusive`)];
  }
  const isLater = typeof old === "number" && next > old;
  return isLater ? [invalidValue(path, next, "must be less than or equal to previous value")] : [];
}

function tolerationErrors(next: readonly object[], old: readonly object[]): FieldError[] {
  const withoutSeconds = (toleration: object) => ({ ...toleration, tolerationSeconds: undefined });
  const kept = next.map(withoutSeconds);
  const isMissing = old.some((one) => !kept.some((other) => isDeepStrictEqual(other, withoutSeconds(one))));
  const sentence = "existing toleration can not be modified except its tolerationSeconds";
  return isMissing ? [forbiddenField(["spec", "tolerations"], sentence)] : [];
}

function withUpdatableFieldsOf(next: PodSpec, old: PodSpec): PodSpec {
  const isShortened =
    (old.terminationGracePeriodSeconds ?? 0) < 0 && next.terminationGracePeriodSeconds === 1;
  const { activeDeadlineSeconds, tolerations, ...rest } = next;
  return {
    ...rest,
    ...(old.activeDeadlineSeconds !== undefined && { activeDeadlineSeconds: old.activeDeadlineSeconds }),
    ...(old.tolerations !== undefined && { tolerations: old.tolerations }),
    ...(isShortened && { terminationGracePeriodSeconds: old.terminationGracePeriodSeconds }),
    containers: withImagesOf(next.containers, old.containers),
    ...(next.initContainers && {
      initContainers: withImagesOf(next.initContainers, old.initContainers ?? []),
    }),
  } as PodSpec;
}

function withImagesOf(next: readonly Container[], old: readonly Container[]): Container[] {
  return next.map((container, index) => {
    const image = old[index]?.image;
    return image === undefined ? container : { ...container, image };
  });
}

function listOf(value: unknown): object[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "object" && entry !== null) : [];
}
