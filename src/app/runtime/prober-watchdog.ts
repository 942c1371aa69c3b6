/** A process whose event loop is checked. */
export interface Watched {
  /** Resolves when the process answers; rejects when it has died, which the pool handles. */
  beat(): Promise<unknown>;
}

/** How often the watchdog sends a beat to the prober. */
export const PROBER_BEAT_MS = 5_000;
/**
 * Beats in a row, one every 5 s, that the probing worker may miss. Past it, it counts as hung, and
 * another worker probes.
 */
export const MAX_SILENT_BEATS = 6;

interface ProberWatchOptions<Prober extends Watched> {
  /** Called when the prober hangs. The watchdog no longer watches it. */
  readonly onHung: (prober: Prober) => void;
  readonly beatMs?: number;
  readonly maxSilentBeats?: number;
}

/**
 * Watches the prober, whose event loop may hang while its process lives. Counts beats, not time, so
 * that a pause of the whole machine does not count as a hang.
 */
export class ProberWatchdog<Prober extends Watched> {
  readonly #options: ProberWatchOptions<Prober>;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ProberWatchOptions<Prober>) {
    this.#options = options;
  }

  /** Watches this prober instead of any other. */
  watch(prober: Prober): void {
    this.stop();
    const { onHung, beatMs = PROBER_BEAT_MS, maxSilentBeats = MAX_SILENT_BEATS } = this.#options;
    let silentBeats = 0;
    let isAsked = false;
    const answered = (): void => {
      isAsked = false;
      silentBeats = 0;
    };
    const timer = setInterval(() => {
      if (isAsked) silentBeats++;
      if (silentBeats >= maxSilentBeats) {
        clearInterval(timer);
        onHung(prober);
        return;
      }
      if (isAsked) return;
      isAsked = true;
      prober.beat().then(answered, () => clearInterval(timer));
    }, beatMs).unref();
    this.#timer = timer;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
