import type { Extensible, ObjectMeta } from "./object-meta.ts";

/** Any API object; its kind selects the strategy. */
export interface ApiObject extends Extensible {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** `Pod/default/web`, `Node//worker`: the object's unique key. */
export function keyOf({ kind, metadata }: ApiObject): string {
  return `${kind}/${metadata.namespace ?? ""}/${metadata.name}`;
}
