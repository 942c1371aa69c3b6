/**
 * Starts waiting probes a few at a time, yielding to the event loop in between. An overloaded
 * thread then runs probes late instead of letting all of them time out.
 */
export class StartQueue<Run> {
  readonly #start: (run: Run) => void;
  readonly #perTurn: number;
  readonly #later: (turn: () => void) => void;
  #waiting: Run[] = [];
  #next = 0;

  /** `later` calls back after the readable sockets were read: `setImmediate`. */
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
