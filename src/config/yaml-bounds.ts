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

/** Aliases of one document: each is looked up among all that have a name. */
export const MAX_YAML_ALIASES = 1_000;
/** Entries that all merge keys (`<<`) of a document may copy; those of a map that merges another are copied once more each time. */
export const MAX_MERGED_ENTRIES = 100_000;

/** Counts what the merge keys of a document copy, in linear time and before anything is copied. */
export class MergedEntries {
  readonly #targets: ReadonlyMap<Alias, Node>;
  readonly #copies = new Map<YAMLMap, number>();

  /** `targets`: the node that each alias refers to. None stands inside its own anchor. */
  constructor(targets: ReadonlyMap<Alias, Node>) {
    this.#targets = targets;
  }

  /** What is copied into this map by its merge keys. */
  of(map: YAMLMap): number {
    return this.#mergesOf(map).reduce((sum, source) => sum + this.#copiesOf(source), 0);
  }

  /** What is copied each time that this map is merged. */
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

/** The tokens directly inside of one. */
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
