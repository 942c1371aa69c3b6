/** Something that nobody may want any more before it is done. */
export interface Cancellable {
  cancel(): void;
}

const running = new WeakMap<AbortSignal, Set<Cancellable>>();

/**
 * What runs under a signal and is cancelled when it aborts; members come and go. A worker has one signal for all its probes: listening
 * once is enough, and adding and taking away a listener for each probe is not cheap.
 */
export function runningUnder(signal: AbortSignal): Set<Cancellable> {
  const known = running.get(signal);
  if (known !== undefined) return known;
  const members = new Set<Cancellable>();
  const cancelAll = (): void => {
    for (const member of [...members]) member.cancel();
  };
  signal.addEventListener("abort", cancelAll, { once: true });
  running.set(signal, members);
  return members;
}
