import type { KubernetesObject } from "../api/objects.ts";

/** One kind's objects by namespace and name. Finding and changing one takes constant time. */
export class KindTable<Object extends KubernetesObject = KubernetesObject> {
  readonly #namespaces = new Map<string, NamespaceTable<Object>>();
  #all: readonly Object[] | undefined;

  get(namespace: string, name: string): Object | undefined {
    return this.#namespaces.get(namespace)?.objects.get(name);
  }

  set(object: Object): void {
    const { namespace = "", name } = object.metadata;
    const table = this.#namespaces.get(namespace) ?? new NamespaceTable();
    this.#namespaces.set(namespace, table);
    table.set(name, object);
    this.#all = undefined;
  }

  delete(namespace: string, name: string): void {
    const table = this.#namespaces.get(namespace);
    if (table === undefined) return;
    table.delete(name);
    if (table.objects.size === 0) this.#namespaces.delete(namespace);
    this.#all = undefined;
  }

  /**
   * In the API server's order, by the bytes of `namespace/name`. Returns the same array until
   * something changes.
   */
  list(namespace?: string): readonly Object[] {
    if (namespace !== undefined) return this.#namespaces.get(namespace)?.list() ?? [];
    this.#all ??= [...this.#namespaces.entries()]
      .sort(([a], [b]) => compareText(`${a}/`, `${b}/`))
      .flatMap(([, table]) => table.list());
    return this.#all;
  }

  *values(): Iterable<Object> {
    for (const { objects } of this.#namespaces.values()) yield* objects.values();
  }

  get size(): number {
    let size = 0;
    for (const { objects } of this.#namespaces.values()) size += objects.size;
    return size;
  }
}

/** Sorts on demand, and sorts names again only after one was added or removed. */
class NamespaceTable<Object extends KubernetesObject> {
  readonly objects = new Map<string, Object>();
  #names: readonly string[] | undefined;
  #list: readonly Object[] | undefined;

  set(name: string, object: Object): void {
    if (!this.objects.has(name)) this.#names = undefined;
    this.objects.set(name, object);
    this.#list = undefined;
  }

  delete(name: string): void {
    if (!this.objects.delete(name)) return;
    this.#names = undefined;
    this.#list = undefined;
  }

  list(): readonly Object[] {
    this.#names ??= [...this.objects.keys()].sort(compareText);
    this.#list ??= this.#names.map((name) => this.objects.get(name) as Object);
    return this.#list;
  }
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
