import { isDeepStrictEqual } from "node:util";
import type { KubernetesObject, Namespace, Node, ObjectKind, ObjectOfKind, Pod } from "../api/objects.ts";
import type { RbacObject } from "../api/rbac-objects.ts";
import { atOnce } from "../lifecycle/slices.ts";
import type { Cluster, ClusterChange } from "./cluster.ts";
import { KindTable } from "./kind-table.ts";

/** Changes kept for watches. A watch that is further behind must list again. */
const DEFAULT_REMEMBERED_CHANGES = 1_000;

const RBAC_KINDS = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] as const;

interface ClusterStoreOptions {
  readonly maxRememberedChanges?: number;
  /**
   * Give a later process a higher start, such as the time in milliseconds: a client that watched
   * the previous process then lists again, and does not wait for versions that never come.
   */
  readonly firstResourceVersion?: number;
  /**
   * A listener threw. The change stays, and other listeners still run. If absent, the first error
   * is thrown after them.
   */
  readonly onListenerError?: (error: unknown, change: ClusterChange) => void;
  /** Returns the age of the state. The source of the objects provides this function. */
  readonly freshnessOf?: Cluster["freshnessOf"];
}

/** An object prepared for storing. It is prepared again if the stored object changes first. */
interface PreparedObject {
  readonly given: KubernetesObject;
  /** The stored object that it was compared with. */
  readonly old: KubernetesObject | undefined;
  /** Replaces the old object; undefined if nothing changed. */
  readonly object: KubernetesObject | undefined;
}

/**
 * The cluster in memory: accepts states or objects, and announces changes. Never alters an object.
 * One without a resourceVersion gets one, and a creationTimestamp; others come from an API server.
 */
export class ClusterStore implements Cluster {
  readonly freshnessOf: Cluster["freshnessOf"];
  readonly #maxRememberedChanges: number;
  readonly #onListenerError: ClusterStoreOptions["onListenerError"];
  readonly #listeners = new Set<(change: ClusterChange) => void>();
  readonly #changes: ClusterChange[] = [];
  readonly #tables = new Map<ObjectKind, KindTable>();
  /**
   * The source's original of each object versioned here, to notice when the source gives the same
   * again.
   */
  readonly #givenOf = new WeakMap<KubernetesObject, KubernetesObject>();
  #resourceVersion: number;

  constructor(options: ClusterStoreOptions = {}) {
    this.#maxRememberedChanges = options.maxRememberedChanges ?? DEFAULT_REMEMBERED_CHANGES;
    this.#onListenerError = options.onListenerError;
    this.freshnessOf = options.freshnessOf;
    this.#resourceVersion = options.firstResourceVersion ?? 1;
  }

  get resourceVersion(): number {
    return this.#resourceVersion;
  }

  /**
   * Makes `objects` the whole state, with our own versions. Unchanged objects keep their version;
   * changed ones keep their creation time. Keys must be unique.
   */
  replaceAll(objects: readonly KubernetesObject[], now: Date): void {
    atOnce(this.replacingAll(objects, now));
  }

  /**
   * Like `replaceAll`, in steps between other work. All changes take effect together in the last
   * step. Returns the number of changes.
   */
  *replacingAll(objects: readonly KubernetesObject[], now: Date): Generator<void, number> {
    const from = this.#resourceVersion;
    const prepared: PreparedObject[] = [];
    const altered: PreparedObject[] = [];
    const wanted = new Map([...this.#tables.keys()].map((kind) => [kind, new Set<string>()]));
    for (const object of objects) {
      const each = this.#prepare(withoutVersion(object), now);
      prepared.push(each);
      if (each.object !== undefined) altered.push(each);
      const places = wanted.get(object.kind) ?? new Set();
      wanted.set(object.kind, places.add(placeOf(object)));
      yield;
    }
    const gone: KubernetesObject[] = [];
    for (const [kind, places] of wanted) {
      for (const object of [...this.#tableOf(kind).values()]) {
        if (!places.has(placeOf(object))) gone.push(object);
        yield;
      }
    }
    if (this.#resourceVersion === from) return this.#change(altered, gone, now);
    return this.#replace(new Set([...this.#tables.keys(), ...wanted.keys()]), prepared, now);
  }

  /** Makes `objects` the complete list of their kind. Keys must be unique. */
  replaceKind(kind: ObjectKind, objects: readonly KubernetesObject[], now = new Date()): void {
    const prepared = objects.map((object) => this.#prepare(object, now));
    this.#replace(new Set([kind]), prepared, now);
  }

  /** Adds an object, or replaces the one with its name. False if nothing changed. */
  upsert(object: KubernetesObject, now = new Date()): boolean {
    const change = this.#put(this.#prepare(object, now), now);
    if (change === undefined) return false;
    this.#announce([change]);
    return true;
  }

  /** Removes an object. False if there was none. The namespace of a cluster-scoped kind is "". */
  remove(kind: ObjectKind, namespace: string, name: string, now = new Date()): boolean {
    const table = this.#tables.get(kind);
    const object = table?.get(namespace, name);
    if (table === undefined || object === undefined) return false;
    table.delete(namespace, name);
    this.#announce([this.#deletionOf(object, now)]);
    return true;
  }

  get<Kind extends ObjectKind>(kind: Kind, namespace: string, name: string): ObjectOfKind<Kind> | undefined {
    return this.#tables.get(kind)?.get(namespace, name) as ObjectOfKind<Kind> | undefined;
  }

  list<Kind extends ObjectKind>(kind: Kind, namespace?: string): readonly ObjectOfKind<Kind>[] {
    return (this.#tables.get(kind)?.list(namespace) ?? []) as readonly ObjectOfKind<Kind>[];
  }

  getPod(namespace: string, name: string): Pod | undefined {
    return this.get("Pod", namespace, name);
  }

  getNode(name: string): Node | undefined {
    return this.get("Node", "", name);
  }

  getNamespace(name: string): Namespace | undefined {
    return this.get("Namespace", "", name);
  }

  listPods(namespace?: string): readonly Pod[] {
    return this.list("Pod", namespace);
  }

  listNodes(): readonly Node[] {
    return this.list("Node");
  }

  listRbacObjects(): readonly RbacObject[] {
    return RBAC_KINDS.flatMap((kind): readonly RbacObject[] => this.list(kind));
  }

  subscribe(listener: (change: ClusterChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changesAfter(resourceVersion: number): readonly ClusterChange[] | undefined {
    // Versions of changes are consecutive, so an index gives the version.
    const forgotten = this.#resourceVersion - this.#changes.length;
    if (resourceVersion < forgotten) return undefined;
    return this.#changes.slice(resourceVersion - forgotten);
  }

  #replace(kinds: ReadonlySet<ObjectKind>, objects: readonly PreparedObject[], now: Date): number {
    const before = new Map([...kinds].map((kind) => [kind, [...this.#tableOf(kind).values()]]));
    const after = new Map([...kinds].map((kind) => [kind, new Set<string>()]));
    for (const { given } of objects) after.get(given.kind)?.add(placeOf(given));
    const gone = [...before].flatMap(([kind, stood]) =>
      stood.filter((object) => after.get(kind)?.has(placeOf(object)) !== true),
    );
    return this.#change(objects, gone, now);
  }

  #change(objects: readonly PreparedObject[], gone: readonly KubernetesObject[], now: Date): number {
    const changes: ClusterChange[] = [];
    for (const prepared of objects) {
      const change = this.#put(prepared, now);
      if (change !== undefined) changes.push(change);
    }
    for (const object of gone) {
      const { namespace = "", name } = object.metadata;
      this.#tableOf(object.kind).delete(namespace, name);
      changes.push(this.#deletionOf(object, now));
    }
    this.#announce(changes);
    return changes.length;
  }

  /** Compares and copies, which is the expensive part. Has no visible effect. */
  #prepare(given: KubernetesObject, now: Date): PreparedObject {
    const { namespace = "", name, resourceVersion } = given.metadata;
    const old = this.#tables.get(given.kind)?.get(namespace, name);
    if (old !== undefined && this.#isSame(old, given)) return { given, old, object: undefined };
    return { given, old, object: resourceVersion === undefined ? this.#stamped(given, old, now) : given };
  }

  #put(prepared: PreparedObject, now: Date): ClusterChange | undefined {
    const { kind, metadata } = prepared.given;
    const table = this.#tableOf(kind);
    // The stored object changed after the preparation.
    const isStale = table.get(metadata.namespace ?? "", metadata.name) !== prepared.old;
    const { object, old } = isStale ? this.#prepare(prepared.given, now) : prepared;
    if (object === undefined) return undefined;
    const change = { object: this.#versioned(object), resourceVersion: this.#resourceVersion };
    table.set(object);
    return old === undefined ? { type: "ADDED", ...change } : { type: "MODIFIED", ...change, previous: old };
  }

  #isSame(old: KubernetesObject, given: KubernetesObject): boolean {
    const before = this.#givenOf.get(old);
    if (before !== undefined) return isDeepStrictEqual(before, given);
    return (
      given.metadata.resourceVersion === old.metadata.resourceVersion &&
      given.metadata.uid === old.metadata.uid
    );
  }

  #deletionOf(previous: KubernetesObject, now: Date): ClusterChange {
    const isOurs = this.#givenOf.has(previous);
    const object = this.#versioned(isOurs ? this.#stamped(previous, previous, now) : previous);
    return { type: "DELETED", object, previous, resourceVersion: this.#resourceVersion };
  }

  /** Our own copy, as stored except for its version. */
  #stamped(given: KubernetesObject, old: KubernetesObject | undefined, now: Date): KubernetesObject {
    const creationTimestamp =
      given.metadata.creationTimestamp ?? old?.metadata.creationTimestamp ?? rfc3339Seconds(now);
    const object = { ...given, metadata: { ...given.metadata, creationTimestamp, resourceVersion: "" } };
    this.#givenOf.set(object, given);
    return object;
  }

  /** Takes the next version, and writes it into the object if that is our own copy. */
  #versioned(object: KubernetesObject): KubernetesObject {
    this.#resourceVersion++;
    if (this.#givenOf.has(object)) {
      const metadata: { resourceVersion?: string } = object.metadata;
      metadata.resourceVersion = String(this.#resourceVersion);
    }
    return object;
  }

  /** The new state is visible before listeners run. A failing listener affects neither the source nor other listeners. */
  #announce(changes: readonly ClusterChange[]): void {
    for (const change of changes) this.#changes.push(change);
    const surplus = this.#changes.length - this.#maxRememberedChanges;
    if (surplus > 0) this.#changes.splice(0, surplus);
    const errors: unknown[] = [];
    for (const change of changes) {
      for (const listener of [...this.#listeners]) {
        try {
          listener(change);
        } catch (error) {
          if (this.#onListenerError === undefined) errors.push(error);
          else this.#onListenerError(error, change);
        }
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  #tableOf(kind: ObjectKind): KindTable {
    const table = this.#tables.get(kind) ?? new KindTable();
    this.#tables.set(kind, table);
    return table;
  }
}

/** A version in a file has no meaning in this process. */
function withoutVersion(object: KubernetesObject): KubernetesObject {
  if (object.metadata.resourceVersion === undefined) return object;
  const { resourceVersion: _, ...metadata } = object.metadata;
  return { ...object, metadata } as KubernetesObject;
}

function placeOf({ metadata: { namespace = "", name } }: KubernetesObject): string {
  return `${namespace}/${name}`;
}

function rfc3339Seconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, "Z");
}
