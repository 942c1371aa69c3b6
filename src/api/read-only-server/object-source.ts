import type { ApiObject } from "../api-object.ts";

/** A change of a served object. */
export interface SourceChange {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: ApiObject;
  /** The replaced object; a watch with a selector needs it to see an object leave. */
  readonly previous?: ApiObject;
  readonly resourceVersion: number;
}

/** The read-only API's objects, from memory. */
export interface ObjectSource {
  /** The namespace of a cluster-scoped kind is "". */
  get(kind: string, namespace: string, name: string): ApiObject | undefined;
  list(kind: string, namespace?: string): readonly ApiObject[];
  readonly resourceVersion: number;
  subscribe(listener: () => void): () => void;
  /** Undefined if some of the changes are forgotten. */
  changesAfter(resourceVersion: number): readonly SourceChange[] | undefined;
}
