/** Requests are served in between slices of this length, in milliseconds. */
const SLICE_MS = 4;

/** Does work that yields between its steps to its end, in slices of some milliseconds, each in a turn of its own. Rejects with what it throws. */
export async function inSlices<Result>(work: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const endMs = performance.now() + SLICE_MS;
    while (performance.now() < endMs) {
      const step = work.next();
      if (step.done === true) return step.value;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Does it at once. */
export function atOnce<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
