import {
  type Alias,
  type CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type YAMLMap,
} from "yaml";

/** Aliases in one document; resolving one searches all anchors. Past it the file is refused. */
export const MAX_YAML_ALIASES = 1_000;
/**
 * Entries that a document's merge keys (`<<`) copy; nested merges copy entries again. Past it the
 * file is refused.
 */
export const MAX_MERGED_ENTRIES = 100_000;

/** Counts the entries that merge keys would copy, in linear time and before the copying. */
export class MergedEntries {
  readonly #targets: ReadonlyMap<Alias, Node>;
  readonly #copies = new Map<YAMLMap, number>();

  /** `targets` maps each alias to its node; no alias is inside its own anchor. */
  constructor(targets: ReadonlyMap<Alias, Node>) {
    this.#targets = targets;
  }

  /** The entries that merge keys copy into this map. */
  of(map: YAMLMap): number {
    return this.#mergesOf(map).reduce((sum, source) => sum + this.#copiesOf(source), 0);
  }

  /** The entries that each merge of this map copies. */
  #copiesOf(map: YAMLMap): number {
    let copies = this.#copies.get(map);
    if (copies === undefined) {
      copies = map.items.length + this.of(map);
      this.#copies.set(map, copies);
    }
    return copies;
  }

  #mergesOf(map: YAMLMap): YAMLMap[] {
    return map.items.filter(isMerge).flatMap(({ value }) => {
      const source = this.#resolve(value);
      const sources = isSeq(source) ? source.items.map((item) => this.#resolve(item)) : [source];
      return sources.filter((one) => isMap(one));
    });
  }

  #resolve(value: unknown): unknown {
    return isAlias(value) ? this.#targets.get(value) : value;
  }
}

function isMerge({ key }: Pair): boolean {
  if (!isScalar(key)) return false;
  const { value } = key;
  return typeof value === "symbol" ? value.description === "<<" : value === "<<";
}

/** The tokens directly inside another. */
export function* childrenOf(token: CST.Token): Generator<CST.Token> {
  if (token.type === "document" && token.value) {
    yield token.value;
  }
  if ("items" in token) {
    for (const item of token.items) {
      if (item.key) {
        yield item.key;
      }
      if (item.value) {
        yield item.value;
      }
    }
  }
}
