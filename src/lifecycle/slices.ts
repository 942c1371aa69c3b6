/** Requests are served between slices of this many milliseconds. */
const SLICE_MS = 4;

/**
 * Completes a generator's work in slices of a few milliseconds, each in its own turn. What follows
 * the last of several has a turn of its own, too. Rejects with the work's exception.
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

/** Completes the work in one go. */
export function atOnce<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
