import type { KubernetesObject } from "../api/objects.ts";

/** `Pod/default/web`, `Node//worker`: what may exist only once. */
export function keyOf({ kind, metadata }: KubernetesObject): string {
  return `${kind}/${metadata.namespace ?? ""}/${metadata.name}`;
}

/** The order in which the API server lists: namespace, then name, by bytes. */
export function compareByKey(left: KubernetesObject, right: KubernetesObject): number {
  const [a, b] = [keyOf(left), keyOf(right)];
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
