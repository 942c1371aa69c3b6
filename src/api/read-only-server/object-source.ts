import type { Namespace, Node, ObjectChange, Pod } from "../objects.ts";

/** What the read-only API shows. Answers come from memory. */
export interface ObjectSource {
  getPod(namespace: string, name: string): Pod | undefined;
  getNode(name: string): Node | undefined;
  getNamespace(name: string): Namespace | undefined;
  listPods(namespace?: string): readonly Pod[];
  listNodes(): readonly Node[];
  listNamespaces(): readonly Namespace[];
  readonly resourceVersion: number;
  subscribe(listener: () => void): () => void;
  /** Undefined when some of the changes since are no longer remembered. */
  changesAfter(resourceVersion: number): readonly ObjectChange[] | undefined;
}
