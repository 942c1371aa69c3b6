/**
 * Characters of one replica's list of sessions or recordings and 32 for each value. Past it the list
 * names the replica as missing.
 */
const MAX_PEER_LIST_CHARACTERS: number = 256 * 1024 * 1024;
const VALUE_COST = 32;

/** Bounds the memory for a list that another replica sends in pages. */
export class ListCost {
  #cost = 0;

  /** Throws Error with a message for operators. No item may be nested without end. */
  add(items: readonly unknown[]): void {
    this.#cost += costOf(items);
    if (this.#cost > MAX_PEER_LIST_CHARACTERS) throw new Error("its list takes too much memory");
  }
}

function costOf(value: unknown): number {
  if (typeof value === "string") return VALUE_COST + value.length;
  if (typeof value !== "object" || value === null) return VALUE_COST;
  let cost = VALUE_COST;
  if (!Array.isArray(value)) for (const name of Object.keys(value)) cost += name.length;
  for (const member of Object.values(value)) cost += costOf(member);
  return cost;
}
