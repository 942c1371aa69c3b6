/** A process that is asked whether it still answers. */
export interface Watched {
  /** Resolves when he answers; rejects when he is gone, which others see too. */
  beat(): Promise<unknown>;
}

/** How often the prober is asked. */
export const PROBER_BEAT_MS = 5_000;
/** Beats in a row without an answer, after which it counts as hung: half a minute. */
export const MAX_SILENT_BEATS = 6;

export interface ProberWatchOptions<Prober extends Watched> {
  /** It has not answered for so long. It is not watched any more. */
  readonly onHung: (prober: Prober) => void;
  readonly beatMs?: number;
  readonly maxSilentBeats?: number;
}

/**
 * Watches the one worker that probes for all: its loop may stand still while its process lives. Beats are counted, and not time: where all
 * processes stood still, none was silent.
 */
export class ProberWatchdog<Prober extends Watched> {
  readonly #options: ProberWatchOptions<Prober>;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ProberWatchOptions<Prober>) {
    this.#options = options;
  }

  /** That one alone from now on. */
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
