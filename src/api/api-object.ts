import type { Extensible, ObjectMeta } from "./object-meta.ts";

/** Any object of the API: its kind says which strategy knows the rest. */
export interface ApiObject extends Extensible {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** `Pod/default/web`, `Node//worker`: what may exist only once. */
export function keyOf({ kind, metadata }: ApiObject): string {
  return `${kind}/${metadata.namespace ?? ""}/${metadata.name}`;
}
