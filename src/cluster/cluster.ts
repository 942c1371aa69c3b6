// src/cluster: pods, nodes, Services and Ingresses, from manifests or a live API; `locate`

import type { StatusError } from "@sluice/client/internal/api/status";
import type { Namespace, Node, ObjectChange, ObjectKind, ObjectOfKind, Pod } from "../api/objects.ts";
import type { RbacObject } from "../api/rbac-objects.ts";

/** The kinds of objects that decide a session. */
export const SESSION_KINDS: readonly ObjectKind[] = ["Pod", "Node", "Namespace"];

export const RBAC_KINDS: readonly ObjectKind[] = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];

/** Cluster state in memory. Nothing here waits. */
export interface Cluster {
  /** The namespace of a cluster-scoped kind is "". */
  get<Kind extends ObjectKind>(kind: Kind, namespace: string, name: string): ObjectOfKind<Kind> | undefined;
  /**
   * Sorted by namespace and name; all namespaces if none is given. Returns the same array until an
   * object changes.
   */
  list<Kind extends ObjectKind>(kind: Kind, namespace?: string): readonly ObjectOfKind<Kind>[];
  getPod(namespace: string, name: string): Pod | undefined;
  getNode(name: string): Node | undefined;
  getNamespace(name: string): Namespace | undefined;
  listPods(namespace?: string): readonly Pod[];
  listNodes(): readonly Node[];
  listRbacObjects(): readonly RbacObject[];
  /** Grows with every change. A list read now gets this version. */
  readonly resourceVersion: number;
  /** Absent if the state is always current. */
  readonly freshnessOf?: ((kinds: readonly ObjectKind[]) => Freshness) | undefined;
  /** Calls the listener after every change, in order, until the returned function is called. */
  subscribe(listener: (change: ClusterChange) => void): () => void;
  /** Changes after that version; undefined if some of them are no longer remembered. */
  changesAfter(resourceVersion: number): readonly ClusterChange[] | undefined;
}

export type ClusterChange = ObjectChange;

/** How old the state of some kinds is. */
export interface Freshness {
  readonly asOf: Date;
  /** The 503 for requests that need the state, if it is too old. */
  readonly problem: StatusError | undefined;
}

/** Throws StatusError 503 if the state of the kinds is too old. */
export function requireFresh(
  { freshnessOf }: { readonly freshnessOf?: ((kinds: readonly ObjectKind[]) => Freshness) | undefined },
  kinds: readonly ObjectKind[],
): void {
  const problem = freshnessOf?.(kinds).problem;
  if (problem !== undefined) throw problem;
}
