import type { ApiObject } from "../api-object.ts";
import type { FieldError } from "../field-errors.ts";
import { validateMetadataUpdate } from "../validation/validate-metadata-update.ts";
import type { Strategy } from "./strategy.ts";

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
