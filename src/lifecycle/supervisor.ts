import { setTimeout as sleep } from "node:timers/promises";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { Logger } from "../observability/logger.ts";
import type { Component, Health } from "./component.ts";

/**
 * The time for a component's stop, and for its drain beyond the grace period. Past it the
 * supervisor logs the component's name and continues without it.
 */
export const MAX_STOP_MS = 10_000;

/** How a program shuts down. */
export interface Departure {
  /** How many milliseconds the program still serves everything. */
  readonly delayMs: number;
  /** Another program has taken over the listening sockets and accepts clients that reconnect. */
  readonly hasSuccessor: boolean;
}

const AT_ONCE: Departure = { delayMs: 0, hasSuccessor: false };

/** One entry of the list: a name for logs, and the function that starts the component. */
class Part<Kind extends Component = Component> {
  readonly name: string;
  readonly #build: () => Kind | Promise<Kind>;
  #started: Kind | undefined;

  constructor(name: string, build: () => Kind | Promise<Kind>) {
    this.name = name;
    this.#build = build;
  }

  async start(): Promise<void> {
    this.#started = await this.#build();
  }

  /**
   * The component, for the components after it. Throws if it has not started, because the list is
   * out of order.
   */
  get started(): Kind {
    if (this.#started === undefined) throw new Error(`the component "${this.name}" has not started`);
    return this.#started;
  }

  /** The component, or undefined before its start, for callers that may ask at any time. */
  get ifStarted(): Kind | undefined {
    return this.#started;
  }
}

/**
 * Starts and stops a program's components: from top to bottom, and in reverse, so that a component
 * stops before those it was built on. A failed start stops the components that had started.
 */
export class Supervisor {
  readonly #logger: Pick<Logger, "error">;
  readonly #maxStopMs: number;
  readonly #parts: Part[] = [];
  /** In start order. */
  readonly #running: Part[] = [];
  #hasStarted = false;
  #isDraining = false;
  #stopped: Promise<readonly string[]> | undefined;

  constructor(logger: Pick<Logger, "error">, { maxStopMs = MAX_STOP_MS }: { maxStopMs?: number } = {}) {
    this.#logger = logger;
    this.#maxStopMs = maxStopMs;
  }

  /** Appends a component to the list. `start` calls `build` after the components before it have started. */
  add<Kind extends Component>(name: string, build: () => Kind | Promise<Kind>): Part<Kind> {
    const part = new Part(name, build);
    this.#parts.push(part);
    return part;
  }

  /** If a component cannot start, stops the others and rejects with its error. */
  async start(): Promise<void> {
    try {
      for (const part of this.#parts) {
        await part.start();
        this.#running.push(part);
      }
      this.#hasStarted = true;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /**
   * Readiness of the whole program: false until the last component has started, and from the beginning
   * of a shutdown.
   */
  readonly lifeChecks: Readonly<Record<string, () => Health>> = {
    starting: () => (this.#hasStarted ? undefined : "the gateway is starting"),
    draining: () => (this.#isDraining ? "the gateway is shutting down" : undefined),
  };

  /** The health check of each component that implements one, by component name. */
  get healthChecks(): Readonly<Record<string, () => Health>> {
    return Object.fromEntries(
      this.#running.flatMap(({ name, started }) =>
        started.health === undefined ? [] : [[name, () => started.health?.()]],
      ),
    );
  }

  /**
   * Reloads all components at once, since none depends on another's reload. Rejects with the first
   * failure once all have settled.
   */
  async reload(next: GatewayConfiguration): Promise<void> {
    const settled = await Promise.allSettled(
      this.#running.map(async ({ started }) => started.reload?.(next)),
    );
    const failed = settled.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  /**
   * Reports not ready for `delayMs` while everything is still served; then drains all components at once
   * and stops them. Resolves with the names of those that did not stop.
   */
  async shutDown(
    graceMs: number,
    { delayMs, hasSuccessor }: Departure = AT_ONCE,
  ): Promise<readonly string[]> {
    this.#isDraining = true;
    if (delayMs > 0) await Promise.all([this.enterLameDuck(hasSuccessor), sleep(delayMs)]);
    await Promise.all(
      this.#running
        .toReversed()
        .map(({ name, started }) =>
          this.#bounded(name, "drain", graceMs + this.#maxStopMs, async () => started.drain?.(graceMs)),
        ),
    );
    return this.stop();
  }

  /** Asks the clients of all components to leave. Never rejects. */
  async enterLameDuck(hasSuccessor: boolean): Promise<void> {
    await Promise.all(
      this.#running
        .toReversed()
        .map(({ name, started }) =>
          this.#bounded(name, "lame duck", this.#maxStopMs, async () =>
            started.enterLameDuck?.(hasSuccessor),
          ),
        ),
    );
  }

  /**
   * Stops all components without a grace period. Resolves with the names of those that did not stop.
   * Never rejects.
   */
  stop(): Promise<readonly string[]> {
    this.#stopped ??= this.#stopAll();
    return this.#stopped;
  }

  async #stopAll(): Promise<readonly string[]> {
    const left: string[] = [];
    for (const { name, started } of this.#running.toReversed()) {
      if (!(await this.#bounded(name, "stop", this.#maxStopMs, async () => started.stop()))) left.push(name);
    }
    return left;
  }

  /** Resolves with false if the step failed or exceeded `timeoutMs`. */
  async #bounded(
    component: string,
    step: "lame duck" | "drain" | "stop",
    timeoutMs: number,
    run: () => Promise<void>,
  ): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not done after ${timeoutMs} ms`)), timeoutMs);
    });
    try {
      await Promise.race([run(), late]);
      return true;
    } catch (error) {
      this.#logger.error({ component, step, error }, "a component did not end");
      return false;
    } finally {
      clearTimeout(timer);
    }
  }
}
