/**
 * The parts that a builder has started. They are stopped in reverse when the builder throws, or with
 * its component.
 */
export class Started {
  readonly #stops: (() => unknown)[] = [];

  /** Returns the result of `build`. If `build` throws, stops the parts that it had started, then rethrows. */
  static async building<T>(build: (started: Started) => T | Promise<T>): Promise<T> {
    const started = new Started();
    try {
      return await build(started);
    } catch (error) {
      // The builder's own error is the one to report.
      await started.stop().catch(() => {});
      throw error;
    }
  }

  /** Returns `part`, which `stop` will stop. */
  add<T>(part: T, stop: (part: T) => unknown): T {
    this.#stops.push(() => stop(part));
    return part;
  }

  /** Stops all parts, the last one first. Rejects with the first failure, after the others are stopped. */
  async stop(): Promise<void> {
    const failures: unknown[] = [];
    for (const stop of this.#stops.splice(0).reverse()) {
      try {
        await stop();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
