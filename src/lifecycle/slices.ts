/**
 * The length of a slice, in milliseconds; requests are served between slices. A turn may take three
 * times as long if two jobs meet, at a last step, or during garbage collection.
 */
const SLICE_MS = 2;

/**
 * Completes a generator's work in slices of a few milliseconds, each in its own turn. If there were
 * several, the caller continues in a turn of its own, too. Rejects with the work's exception.
 */
export async function inSlices<Result>(work: Generator<void, Result>): Promise<Result> {
  for (let isFirst = true; ; isFirst = false) {
    const endMs = performance.now() + SLICE_MS;
    while (performance.now() < endMs) {
      const step = work.next();
      if (step.done !== true) continue;
      if (!isFirst) await nextTurn();
      return step.value;
    }
    await nextTurn();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The number of items sorted in one step. */
const SORTED_AT_ONCE = 256;

/** Sorts a copy in steps. The sort is stable. */
export function* sorting<Item>(
  items: readonly Item[],
  compare: (a: Item, b: Item) => number,
): Generator<void, Item[]> {
  let runs: Item[][] = [];
  for (let at = 0; at < items.length; at += SORTED_AT_ONCE) {
    runs.push(items.slice(at, at + SORTED_AT_ONCE).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const longer: Item[][] = [];
    for (let at = 0; at < runs.length; at += 2)
      longer.push(yield* merging(runs[at] ?? [], runs[at + 1] ?? [], compare));
    runs = longer;
  }
  return runs[0] ?? [];
}

function* merging<Item>(
  left: readonly Item[],
  right: readonly Item[],
  compare: (a: Item, b: Item) => number,
): Generator<void, Item[]> {
  const [last, first] = [left.at(-1), right[0]];
  // Most runs are already in order, because only a few items changed.
  if (last === undefined || first === undefined || compare(last, first) <= 0) return left.concat(right);
  const merged: Item[] = [];
  let taken = 0;
  for (const item of right) {
    for (; taken < left.length && compare(left[taken] as Item, item) <= 0; taken++) {
      merged.push(left[taken] as Item);
      yield;
    }
    merged.push(item);
    yield;
  }
  return merged.concat(left.slice(taken));
}

/** Completes the work without a pause. */
export function atOnce<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
