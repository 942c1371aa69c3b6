import type { ApiObject } from "../api/api-object.ts";

/** `Pod/default/web`, `Node//worker`: what may exist only once. */
export function keyOf({ kind, metadata }: ApiObject): string {
  return `${kind}/${metadata.namespace ?? ""}/${metadata.name}`;
}
