import { getObject } from "@sluice/client/internal/get-object";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { Target } from "@sluice/client/internal/target";
import { isDeeperThan, MAX_OBJECT_DEPTH } from "../../api/is-deeper-than.ts";
import { withoutNulls } from "../../api/validation/without-nulls.ts";

/** Whether a value has the fields that a command reads. */
export type Shape = (value: unknown) => boolean;

const LONE_SURROGATE = /\p{Surrogate}/u;

/** A lone surrogate has no UTF-8 form, so no path can contain it. */
export const text: Shape = (value) => typeof value === "string" && !LONE_SURROGATE.test(value);
export const number: Shape = (value) => typeof value === "number";
export const flag: Shape = (value) => typeof value === "boolean";

/** Go writes null for an empty value; `getShaped` removes it. */
export const optional =
  (shape: Shape): Shape =>
  (value) =>
    value === undefined || value === null || shape(value);

export const listOf =
  (shape: Shape): Shape =>
  (value) =>
    Array.isArray(value) && value.every(shape);

/** An object that has these fields, and may have more. */
export const object =
  (fields: Readonly<Record<string, Shape>>): Shape =>
  (value) =>
    isObject(value) && Object.entries(fields).every(([name, shape]) => shape(value[name]));

/**
 * Reads an object as `getObject` does, and removes its nulls. Throws UpstreamError if the answer
 * has another shape, or is nested too deeply.
 */
export async function getShaped<T>(
  target: Target,
  path: string,
  { what, shape, ...options }: { what: string; shape: Shape; signal?: AbortSignal; timeoutMs?: number },
): Promise<T> {
  const answer = await getObject<unknown>(target, path, options);
  if (isDeeperThan(answer, MAX_OBJECT_DEPTH)) {
    const problem = `the server's answer is nested deeper than ${MAX_OBJECT_DEPTH} levels`;
    throw new UpstreamError("malformed-response", problem);
  }
  if (!shape(answer)) throw new UpstreamError("malformed-response", `the server's answer is not ${what}`);
  return withoutNulls(answer as Readonly<Record<string, unknown>>, undefined) as T;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
