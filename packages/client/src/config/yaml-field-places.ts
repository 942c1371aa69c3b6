import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
} from "yaml";

/** A field's path: map keys and sequence indexes, outermost first. */
export type FieldPath = readonly (string | number)[];

/** The node of each alias. */
export type AliasTargets = Map<Alias, Node>;

/**
 * The positions of a document's fields. Indexes a map at its first look-up, so that each look-up
 * takes constant time.
 */
export class FieldPlaces {
  readonly #document: Document.Parsed;
  readonly #targets: AliasTargets;
  readonly #indexes = new Map<YAMLMap, ReadonlyMap<string, Pair>>();

  constructor(document: Document.Parsed, targets: AliasTargets) {
    this.#document = document;
    this.#targets = targets;
  }

  /** The field's offset, or that of its nearest existing parent. */
  offsetOf(path: FieldPath): number {
    let node: Node | null = this.#document.contents;
    let offset = node?.range?.[0] ?? this.#document.range[0];
    for (const part of path) {
      const found = this.#childOf(isAlias(node) ? this.#targets.get(node) : node, part);
      if (found === undefined) break;
      offset = found.offset ?? offset;
      node = found.node;
    }
    return offset;
  }

  /** A map entry's position is its key's; a sequence item's is its value's. */
  #childOf(holder: unknown, part: string | number): { node: Node | null; offset?: number } | undefined {
    if (isMap(holder)) {
      const pair = this.#indexOf(holder).get(String(part));
      return pair && withOffset(pair.value as Node | null, pair.key as Node);
    }
    if (isSeq(holder) && typeof part === "number") {
      const item = holder.items[part] as Node | undefined;
      return item && withOffset(item, item);
    }
    return undefined;
  }

  #indexOf(map: YAMLMap): ReadonlyMap<string, Pair> {
    let index = this.#indexes.get(map);
    if (index === undefined) {
      const scalars = map.items.filter(({ key }) => isScalar(key));
      index = new Map(scalars.map((pair) => [String((pair.key as Scalar).value), pair]));
      this.#indexes.set(map, index);
    }
    return index;
  }
}

function withOffset(node: Node | null, place: Node): { node: Node | null; offset?: number } {
  const offset = place.range?.[0];
  return offset === undefined ? { node } : { node, offset };
}
