import type { ApiObject } from "../../../src/api/api-object.ts";
import { qualifiedName, type Resource } from "./resources.ts";

export interface StoredEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly resource: Resource;
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
  readonly version: number;
}

export interface Page {
  readonly objects: readonly ApiObject[];
  /**
   * The version of the first page: a watch that starts there sees what changed while the others
   * were read.
   */
  readonly version: number;
  readonly continueToken: string | undefined;
  readonly remaining: number;
}

/**
 * The API server's etcd: one counter of versions, objects by key, and past events that were not
 * compacted.
 */
export class ObjectStore {
  readonly #tables = new Map<string, Map<string, ApiObject>>();
  readonly #orders = new Map<string, readonly string[]>();
  readonly #listeners = new Map<string, Set<(event: StoredEvent) => void>>();
  readonly #maxEvents: number;
  #events: StoredEvent[] = [];
  #version: number;
  /** Events after this version are remembered. */
  #compactedVersion: number;

  constructor({ maxEvents = 10_000, firstVersion = 1_000 } = {}) {
    this.#maxEvents = maxEvents;
    this.#version = firstVersion;
    this.#compactedVersion = firstVersion;
  }

  get version(): number {
    return this.#version;
  }

  get(resource: Resource, namespace: string, name: string): ApiObject | undefined {
    return this.#tableOf(resource).get(`${namespace}/${name}`);
  }

  /** Stores the object with the next version, and notifies the watchers. */
  put(resource: Resource, object: ApiObject): ApiObject {
    const { namespace = "", name } = object.metadata;
    const table = this.#tableOf(resource);
    const previous = table.get(`${namespace}/${name}`);
    this.#version++;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
    table.set(`${namespace}/${name}`, stored);
    if (previous === undefined) this.#orders.delete(qualifiedName(resource));
    this.#tell({
      type: previous ? "MODIFIED" : "ADDED",
      resource,
      object: stored,
      previous,
      version: this.#version,
    });
    return stored;
  }

  /** The last event of an object shows its last state, with the version of its deletion. */
  delete(resource: Resource, namespace: string, name: string): ApiObject | undefined {
    const table = this.#tableOf(resource);
    const previous = table.get(`${namespace}/${name}`);
    if (previous === undefined) return undefined;
    this.#version++;
    table.delete(`${namespace}/${name}`);
    this.#orders.delete(qualifiedName(resource));
    const object = {
      ...previous,
      metadata: { ...previous.metadata, resourceVersion: String(this.#version) },
    };
    this.#tell({ type: "DELETED", resource, object, previous, version: this.#version });
    return object;
  }

  list(resource: Resource, namespace?: string): ApiObject[] {
    const table = this.#tableOf(resource);
    const keys = this.#orderOf(resource);
    const wanted = namespace === undefined ? keys : keys.filter((key) => key.startsWith(`${namespace}/`));
    return wanted.map((key) => table.get(key) as ApiObject);
  }

  /** Undefined if the token's version is compacted, or not one of ours. */
  page(
    resource: Resource,
    namespace: string | undefined,
    limit: number,
    token: string,
    isWanted: (object: ApiObject) => boolean,
  ): Page | undefined {
    const start = token === "" ? { version: this.#version, after: "" } : decodeToken(token);
    if (start === undefined || start.version < this.#compactedVersion) return undefined;
    const prefix = namespace === undefined ? "" : `${namespace}/`;
    const table = this.#tableOf(resource);
    const objects: ApiObject[] = [];
    const keys = this.#orderOf(resource);
    for (let index = firstAfter(keys, start.after); index < keys.length; index++) {
      const key = keys[index] as string;
      if (prefix !== "" && !key.startsWith(prefix)) continue;
      const object = table.get(key) as ApiObject;
      if (!isWanted(object)) continue;
      objects.push(object);
      if (limit > 0 && objects.length === limit) {
        const remaining = prefix === "" ? keys.length - index - 1 : 1;
        if (remaining === 0) break;
        return { objects, version: start.version, continueToken: encodeToken(start.version, key), remaining };
      }
    }
    return { objects, version: start.version, continueToken: undefined, remaining: 0 };
  }

  /** Undefined if some events are forgotten, or the version is in the future. */
  eventsAfter(version: number, resource: Resource): readonly StoredEvent[] | undefined {
    if (version < this.#compactedVersion || version > this.#version) return undefined;
    const events: StoredEvent[] = [];
    for (let index = this.#events.length - 1; index >= 0; index--) {
      const event = this.#events[index] as StoredEvent;
      if (event.version <= version) break;
      if (event.resource.kind === resource.kind) events.push(event);
    }
    return events.reverse();
  }

  /** Forgets the past: watches and continue tokens from before get 410. */
  compact(): void {
    this.#events = [];
    this.#compactedVersion = this.#version;
  }

  subscribe(resource: Resource, listener: (event: StoredEvent) => void): () => void {
    const name = qualifiedName(resource);
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  #tell(event: StoredEvent): void {
    this.#events.push(event);
    if (this.#events.length > 2 * this.#maxEvents) {
      const forgotten = this.#events.splice(0, this.#maxEvents);
      this.#compactedVersion = forgotten.at(-1)?.version ?? this.#compactedVersion;
    }
    for (const listener of [...(this.#listeners.get(qualifiedName(event.resource)) ?? [])]) listener(event);
  }

  #tableOf(resource: Resource): Map<string, ApiObject> {
    const name = qualifiedName(resource);
    const table = this.#tables.get(name) ?? new Map<string, ApiObject>();
    this.#tables.set(name, table);
    return table;
  }

  #orderOf(resource: Resource): readonly string[] {
    const name = qualifiedName(resource);
    const order = this.#orders.get(name) ?? [...this.#tableOf(resource).keys()].sort();
    this.#orders.set(name, order);
    return order;
  }
}

function firstAfter(keys: readonly string[], after: string): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] as string) <= after && after !== "") low = middle + 1;
    else high = middle;
  }
  return low;
}

function encodeToken(version: number, after: string): string {
  return Buffer.from(JSON.stringify({ version, after })).toString("base64url");
}

function decodeToken(token: string): { version: number; after: string } | undefined {
  try {
    return JSON.parse(Buffer.from(token, "base64url").toString()) as { version: number; after: string };
  } catch {
    return undefined;
  }
}
