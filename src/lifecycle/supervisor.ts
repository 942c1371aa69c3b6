import { setTimeout as sleep } from "node:timers/promises";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { Logger } from "../observability/logger.ts";
import type { Component, Health } from "./component.ts";

/** A component that does not stop in this time, or drain in this time after its grace period, is left behind. */
export const MAX_STOP_MS = 10_000;

/** How a program goes. */
export interface Departure {
  /** So long everything is still served. */
  readonly delayMs: number;
  /** Another program has taken its listening sockets, and is reached by clients that come back. */
  readonly hasSuccessor: boolean;
}

const AT_ONCE: Departure = { delayMs: 0, hasSuccessor: false };

/** One line of the list: a name for logs, and how the component is started. */
export class Part<Kind extends Component = Component> {
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

  /** What it gives to the parts after it. Throws before it has started: the list is in the wrong order then. */
  get started(): Kind {
    if (this.#started === undefined) throw new Error(`the component "${this.name}" has not started`);
    return this.#started;
  }

  /** The same, for what is asked at any time. */
  get ifStarted(): Kind | undefined {
    return this.#started;
  }
}

/**
 * The lives of a program's components. They start in the order of the list, and stop in reverse: a component goes before those that it was
 * built on. A start that fails stops what had started.
 */
export class Supervisor {
  readonly #logger: Pick<Logger, "error">;
  readonly #maxStopMs: number;
  readonly #parts: Part[] = [];
  /** In the order of their start. */
  readonly #running: Part[] = [];
  #hasStarted = false;
  #isDraining = false;
  #stopped: Promise<readonly string[]> | undefined;

  constructor(logger: Pick<Logger, "error">, { maxStopMs = MAX_STOP_MS }: { maxStopMs?: number } = {}) {
    this.#logger = logger;
    this.#maxStopMs = maxStopMs;
  }

  /** Puts a component at the end of the list. `build` is called by `start`, after the components before it have started. */
  add<Kind extends Component>(name: string, build: () => Kind | Promise<Kind>): Part<Kind> {
    const part = new Part(name, build);
    this.#parts.push(part);
    return part;
  }

  /** Rejects with what the first component that cannot start rejects with; nothing runs then. */
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

  /** Checks of the whole: not ready before the last component has started, nor once a shutdown has begun. */
  readonly lifeChecks: Readonly<Record<string, () => Health>> = {
    starting: () => (this.#hasStarted ? undefined : "the gateway is starting"),
    draining: () => (this.#isDraining ? "the gateway is shutting down" : undefined),
  };

  /** The health of each component that has one, by its name. */
  get healthChecks(): Readonly<Record<string, () => Health>> {
    return Object.fromEntries(
      this.#running.flatMap(({ name, started }) =>
        started.health === undefined ? [] : [[name, () => started.health?.()]],
      ),
    );
  }

  /** All at once: none needs what another reloads. Rejects with the first failure, when all have settled. */
  async reload(next: GatewayConfiguration): Promise<void> {
    const settled = await Promise.allSettled(
      this.#running.map(async ({ started }) => started.reload?.(next)),
    );
    const failed = settled.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  /**
   * Is not ready for a delay while everything is still served; then lets all components finish their work, at once, and stops them.
   * Resolves with the names of those that did not stop.
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

  /** Stops what runs, without a grace period. Resolves with the names of the components that did not stop. Never rejects. */
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

  /** False when the step failed, or took longer than `timeoutMs`. */
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
