import { isDeepStrictEqual } from "node:util";
import type { ApiObject } from "../api-object.ts";

/** A new object's generation. */
export function withFirstGeneration<T extends ApiObject>(object: T): T {
  return { ...object, metadata: { ...object.metadata, generation: 1 } };
}

/**
 * Increments the generation if the spec changed. Expects the old generation in `next`, as
 * `prepareUpdate` sets it.
 */
export function withNextGeneration<T extends ApiObject>(next: T, old: T): T {
  const generation = Number(old.metadata.generation ?? 0);
  const isChanged = !isDeepStrictEqual(meaningOf(next.spec), meaningOf(old.spec));
  return isChanged ? { ...next, metadata: { ...next.metadata, generation: generation + 1 } } : next;
}

/** Empty lists and objects equal absent ones (apimachinery's semantic equality). */
function meaningOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(meaningOf);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, member]) => {
    const meaning = meaningOf(member);
    return meaning === undefined || meaning === null ? [] : [[name, meaning] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
