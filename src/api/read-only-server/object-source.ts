import type { ObjectChange, ObjectOfKind, ServedObject } from "../objects.ts";

/** What the read-only API shows. Answers come from memory. */
export interface ObjectSource {
  /** The namespace of a kind that has none is "". */
  get<Kind extends ServedObject["kind"]>(
    kind: Kind,
    namespace: string,
    name: string,
  ): ObjectOfKind<Kind> | undefined;
  list<Kind extends ServedObject["kind"]>(kind: Kind, namespace?: string): readonly ObjectOfKind<Kind>[];
  readonly resourceVersion: number;
  subscribe(listener: () => void): () => void;
  /** Undefined when some of the changes since are no longer remembered. */
  changesAfter(resourceVersion: number): readonly ObjectChange[] | undefined;
}
