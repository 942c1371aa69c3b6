import type { ObjectChange, ObjectOfKind, ServedObject } from "../objects.ts";

/** The read-only API's objects, from memory. */
export interface ObjectSource {
  /** The namespace of a cluster-scoped kind is "". */
  get<Kind extends ServedObject["kind"]>(
    kind: Kind,
    namespace: string,
    name: string,
  ): ObjectOfKind<Kind> | undefined;
  list<Kind extends ServedObject["kind"]>(kind: Kind, namespace?: string): readonly ObjectOfKind<Kind>[];
  readonly resourceVersion: number;
  subscribe(listener: () => void): () => void;
  /** Undefined if some of the changes are forgotten. */
  changesAfter(resourceVersion: number): readonly ObjectChange[] | undefined;
}
