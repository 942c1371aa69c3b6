import type { ApiObject } from "../api/api-object.ts";

/** `Pod/default/web`, `Node//worker`: what may exist only once. */
export function keyOf({ kind, metadata }: ApiObject): string {
  return `${kind}/${metadata.namespace ?? ""}/${metadata.name}`;
}

/** The order in which the API server lists: namespace, then name, by bytes. */
export function compareByKey(left: ApiObject, right: ApiObject): number {
  const [a, b] = [keyOf(left), keyOf(right)];
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
