// src/cluster: pods, nodes, Services and Ingresses, from manifests or a live API; `locate`

import type { Namespace, Node, ObjectChange, ObjectKind, ObjectOfKind, Pod } from "../api/objects.ts";
import type { RbacObject } from "../api/rbac-objects.ts";
import type { Freshness } from "./freshness.ts";

/** Cluster state. Answers come from memory; nothing here waits. */
export interface Cluster {
  /** The namespace of a kind that has none is "". */
  get<Kind extends ObjectKind>(kind: Kind, namespace: string, name: string): ObjectOfKind<Kind> | undefined;
  /** In order of namespace and name; of every namespace when none is given. The same array until one of them changes. */
  list<Kind extends ObjectKind>(kind: Kind, namespace?: string): readonly ObjectOfKind<Kind>[];
  getPod(namespace: string, name: string): Pod | undefined;
  getNode(name: string): Node | undefined;
  getNamespace(name: string): Namespace | undefined;
  listPods(namespace?: string): readonly Pod[];
  listNodes(): readonly Node[];
  listNamespaces(): readonly Namespace[];
  listRbacObjects(): readonly RbacObject[];
  /** Grows with every change; the version of a list taken now. */
  readonly resourceVersion: number;
  /** Absent: what is known is always of the moment. */
  readonly freshnessOf?: ((kinds: readonly ObjectKind[]) => Freshness) | undefined;
  /** Calls the listener after every change, in order, until the returned function is called. */
  subscribe(listener: (change: ClusterChange) => void): () => void;
  /** Changes after that version, or undefined when some of them are no longer remembered. */
  changesAfter(resourceVersion: number): readonly ClusterChange[] | undefined;
}

export type ClusterChange = ObjectChange;
