/**
 * Starts what waits a few at a time, with everything else of the loop in between. A thread that has more to do than it can would
 * otherwise begin all of it, and let each run out of its time: probes are to be late then, not failures.
 */
export class StartQueue<Run> {
  readonly #start: (run: Run) => void;
  readonly #perTurn: number;
  readonly #later: (turn: () => void) => void;
  #waiting: Run[] = [];
  #next = 0;

  /** `later` calls back after what is ready to be read has been read: `setImmediate`. */
  constructor(perTurn: number, start: (run: Run) => void, later: (turn: () => void) => void) {
    this.#perTurn = perTurn;
    this.#start = start;
    this.#later = later;
  }

  add(runs: readonly Run[]): void {
    const isIdle = this.#waiting.length === 0;
    for (const run of runs) this.#waiting.push(run);
    if (isIdle && this.#waiting.length > 0) this.#turn();
  }

  #turn(): void {
    const end = Math.min(this.#waiting.length, this.#next + this.#perTurn);
    while (this.#next < end) this.#start(this.#waiting[this.#next++] as Run);
    if (this.#next < this.#waiting.length) {
      this.#later(() => this.#turn());
      return;
    }
    this.#waiting = [];
    this.#next = 0;
  }
}
