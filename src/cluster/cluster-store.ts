import { isDeepStrictEqual } from "node:util";
import type { KubernetesObject, Namespace, Node, Pod } from "../api/objects.ts";
import { isRbacObject, type RbacObject } from "../api/rbac-objects.ts";
import type { Cluster, ClusterChange } from "./cluster.ts";
import { compareByKey, keyOf } from "./object-key.ts";

/** How many changes a watch may be behind before it must list again. */
export const DEFAULT_REMEMBERED_CHANGES = 1_000;

export interface ClusterStoreOptions {
  readonly maxRememberedChanges?: number;
  /**
   * Versions of a process that starts later should be higher (the time in milliseconds will do): a client that watched the one
   * before it then lists again instead of waiting for versions that never come.
   */
  readonly firstResourceVersion?: number;
}

interface Entry {
  /** As the source gave it, to see whether it changed. */
  readonly given: KubernetesObject;
  /** With resourceVersion and creationTimestamp. */
  readonly stored: KubernetesObject;
}

/** The cluster in memory: whole states go in, changes come out. Objects are never altered once they are in. */
export class ClusterStore implements Cluster {
  readonly #maxRememberedChanges: number;
  readonly #listeners = new Set<(change: ClusterChange) => void>();
  readonly #changes: ClusterChange[] = [];
  #entries = new Map<string, Entry>();
  #sorted: readonly KubernetesObject[] = [];
  #resourceVersion: number;

  constructor(options: ClusterStoreOptions = {}) {
    this.#maxRememberedChanges = options.maxRememberedChanges ?? DEFAULT_REMEMBERED_CHANGES;
    this.#resourceVersion = options.firstResourceVersion ?? 1;
  }

  get resourceVersion(): number {
    return this.#resourceVersion;
  }

  /** Makes `objects` the whole state. What did not change keeps its version; what stays keeps its age. Keys must be unique. */
  replaceAll(objects: readonly KubernetesObject[], now: Date): void {
    const before = this.#entries;
    const after = new Map<string, Entry>();
    const changes: ClusterChange[] = [];
    for (const given of objects) {
      const key = keyOf(given);
      const old = before.get(key);
      if (old && isDeepStrictEqual(old.given, given)) {
        after.set(key, old);
        continue;
      }
      const stored = this.#stamped(given, old?.stored, now);
      after.set(key, { given, stored });
      changes.push(this.#changeOf(old ? "MODIFIED" : "ADDED", stored, old?.stored));
    }
    for (const [key, { stored }] of before) {
      if (!after.has(key))
        changes.push(this.#changeOf("DELETED", this.#stamped(stored, stored, now), stored));
    }
    if (changes.length === 0) return;
    this.#entries = after;
    this.#sorted = [...after.values()].map(({ stored }) => stored).sort(compareByKey);
    this.#changes.push(...changes);
    this.#changes.splice(0, Math.max(0, this.#changes.length - this.#maxRememberedChanges));
    // The new state stands before anybody hears of it.
    for (const change of changes) {
      for (const listener of [...this.#listeners]) listener(change);
    }
  }

  getPod(namespace: string, name: string): Pod | undefined {
    return this.#entries.get(`Pod/${namespace}/${name}`)?.stored as Pod | undefined;
  }

  getNode(name: string): Node | undefined {
    return this.#entries.get(`Node//${name}`)?.stored as Node | undefined;
  }

  getNamespace(name: string): Namespace | undefined {
    return this.#entries.get(`Namespace//${name}`)?.stored as Namespace | undefined;
  }

  listPods(namespace?: string): readonly Pod[] {
    return this.#sorted.filter(
      (object): object is Pod =>
        object.kind === "Pod" && (namespace === undefined || object.metadata.namespace === namespace),
    );
  }

  listNodes(): readonly Node[] {
    return this.#sorted.filter((object): object is Node => object.kind === "Node");
  }

  listNamespaces(): readonly Namespace[] {
    return this.#sorted.filter((object): object is Namespace => object.kind === "Namespace");
  }

  listRbacObjects(): readonly RbacObject[] {
    return this.#sorted.filter(isRbacObject);
  }

  subscribe(listener: (change: ClusterChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changesAfter(resourceVersion: number): readonly ClusterChange[] | undefined {
    const oldest = this.#changes[0]?.resourceVersion ?? this.#resourceVersion + 1;
    if (resourceVersion < oldest - 1) return undefined;
    return this.#changes.filter((change) => change.resourceVersion > resourceVersion);
  }

  #stamped(given: KubernetesObject, old: KubernetesObject | undefined, now: Date): KubernetesObject {
    this.#resourceVersion++;
    const creationTimestamp =
      given.metadata.creationTimestamp ?? old?.metadata.creationTimestamp ?? rfc3339Seconds(now);
    const resourceVersion = String(this.#resourceVersion);
    return { ...given, metadata: { ...given.metadata, creationTimestamp, resourceVersion } };
  }

  #changeOf(
    type: ClusterChange["type"],
    object: KubernetesObject,
    previous: KubernetesObject | undefined,
  ): ClusterChange {
    const resourceVersion = Number(object.metadata.resourceVersion);
    return { type, object, resourceVersion, ...(previous && { previous }) };
  }
}

function rfc3339Seconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, "Z");
}
