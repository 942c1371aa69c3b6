/** Why a serving process leaves: a signal, too many exceptions, or a program that replaces it. */
type LifeEnd = NodeJS.Signals | "failed" | "replaced";

/**
 * The life of a serving process: `starting`, `serving`, `leaving`. It leaves once, for the first
 * reason.
 */
export class ServeLife {
  #state: "starting" | "serving" | "leaving" = "starting";
  #reload: () => Promise<void> = async () => {};
  #isReloadDue = false;
  #isReloading = false;
  readonly #leaving = new AbortController();
  /** Resolves with the first reason to leave. */
  readonly end: Promise<LifeEnd>;
  /** Resolves when the process has announced that it serves. */
  readonly announced: Promise<void>;
  #end!: (end: LifeEnd) => void;
  #announce!: () => void;

  constructor() {
    this.end = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.announced = new Promise((resolve) => {
      this.#announce = resolve;
    });
  }

  get state(): "starting" | "serving" | "leaving" {
    return this.#state;
  }

  /** Aborted when the process leaves. */
  get leaving(): AbortSignal {
    return this.#leaving.signal;
  }

  /**
   * Rereads the configuration, once the process serves. Signals during a reload cause one more
   * reload, because the files may have changed after it read them.
   */
  reload(): void {
    this.#isReloadDue = true;
    void this.#reloadWhileDue();
  }

  /** The listeners are open. `reload` must not reject. */
  serve(reload: () => Promise<void>): void {
    this.#reload = reload;
    if (this.#state === "starting") this.#state = "serving";
    if (this.#isReloadDue) void this.#reloadWhileDue();
  }

  async #reloadWhileDue(): Promise<void> {
    if (this.#isReloading) return;
    this.#isReloading = true;
    while (this.#isReloadDue && this.#state === "serving") {
      this.#isReloadDue = false;
      await this.#reload();
    }
    this.#isReloading = false;
  }

  /** The service manager and the predecessor know that this process serves. */
  announce(): void {
    this.#announce();
  }

  leave(end: LifeEnd): void {
    if (this.#state === "leaving") return;
    this.#state = "leaving";
    this.#leaving.abort();
    this.#end(end);
  }
}
