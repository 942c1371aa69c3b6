const PACE_MS = 50;

/** Pauses a source so that no more bytes a second are read from it. */
export class ReadPace {
  readonly #bytesPerSecond: number;
  readonly #source: { pause(): void; resume(): void };
  #unpacedBytes = 0;

  constructor(bytesPerSecond: number, source: { pause(): void; resume(): void }) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#source = source;
  }

  /** Call after each part that was read. */
  read(byteLength: number): void {
    this.#unpacedBytes += byteLength;
    if (this.#unpacedBytes < (this.#bytesPerSecond * PACE_MS) / 1_000) return;
    const pauseMs = (this.#unpacedBytes / this.#bytesPerSecond) * 1_000;
    this.#unpacedBytes = 0;
    this.#source.pause();
    setTimeout(() => this.#source.resume(), pauseMs).unref();
  }
}
