// src/lifecycle: the component interface, and the supervisor that starts components in order and
// stops them in reverse

import type { GatewayConfiguration } from "../config/configuration.ts";

/**
 * Undefined means healthy, a text is the problem, and a note means healthy with something that
 * operators should see.
 */
export type Health = string | HealthNote | undefined;

interface HealthNote {
  readonly note: string;
}

/**
 * A started component. Its builder, in the room's `component.ts`, resolves when the component runs.
 * A builder that rejects leaves nothing open.
 */
export interface Component {
  /** Whether this process can take new sessions. Must return at once; an exception counts as a failure. */
  health?(): Health;
  /**
   * Applies the fields that can change without a restart, and reads the files that the configuration
   * names again.
   */
  reload?(next: GatewayConfiguration): Promise<void>;
  /**
   * Keeps serving, and asks clients to leave: closes each connection after its next answer.
   * `hasSuccessor`: another program on this machine accepts clients that reconnect.
   */
  enterLameDuck?(hasSuccessor: boolean): void | Promise<void>;
  /** Accepts no new work. Resolves when the running work has finished, or after `graceMs`. */
  drain?(graceMs: number): Promise<void>;
  /** Releases everything that the component opened. */
  stop(): void | Promise<void>;
}

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
      // Reports the builder's own error rather than the failure to stop.
      await started.stop().catch(() => {});
      throw error;
    }
  }

  /** Registers `part` to be stopped, and returns it. */
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
