/**
 * A thread that also counts is best left alone below this; above, it takes its share of probes to others. Probes a second. One
 * thread manages some 6,000 over HTTP where nothing else is to be done.
 */
export const PROBES_PER_THREAD = 2_000;

/** How many threads of their own probes are worth: none for few, one more for each `perThread` a second, `maxThreads` at most. */
export function threadsFor(probesPerSecond: number, maxThreads: number, perThread: number): number {
  return Math.min(maxThreads, Math.floor(probesPerSecond / perThread));
}
