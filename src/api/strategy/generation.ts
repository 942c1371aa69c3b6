import { isDeepStrictEqual } from "node:util";
import type { ApiObject } from "../api-object.ts";

/** The generation of an object that was just made. */
export function withFirstGeneration<T extends ApiObject>(object: T): T {
  return { ...object, metadata: { ...object.metadata, generation: 1 } };
}

/** One more than before where the spec says something else. Expects the old generation in `next`, as `prepareUpdate` leaves it. */
export function withNextGeneration<T extends ApiObject>(next: T, old: T): T {
  const generation = Number(old.metadata.generation ?? 0);
  const isChanged = !isDeepStrictEqual(meaningOf(next.spec), meaningOf(old.spec));
  return isChanged ? { ...next, metadata: { ...next.metadata, generation: generation + 1 } } : next;
}

/** Empty lists and objects mean what absent ones mean (apimachinery's semantic equality). */
function meaningOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(meaningOf);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, member]) => {
    const meaning = meaningOf(member);
    return meaning === undefined || meaning === null ? [] : [[name, meaning] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
