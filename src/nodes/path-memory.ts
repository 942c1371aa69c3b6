import type { NodeStreaming } from "../config/sections/node-streaming.ts";
import type { PathFailure } from "./node-capability.ts";

type PathPauses = Pick<NodeStreaming, "retryFailedPathMs" | "maxRetryFailedPathMs">;

/** The record of one path to one node. Times are milliseconds of one monotonic clock. */
export class PathMemory {
  readonly #pauses: PathPauses;
  successes = 0;
  failures = 0;
  lastFailure: PathFailure | undefined;
  #pauseMs = 0;
  #avoidedUntilMs = 0;

  constructor(pauses: PathPauses) {
    this.#pauses = pauses;
  }

  succeeded(): void {
    this.successes += 1;
    this.#pauseMs = 0;
    this.#avoidedUntilMs = 0;
  }

  /**
   * Concurrent sessions that fail together count as one failure: the pause grows only after it has
   * ended.
   */
  failed(nowMs: number, how: PathFailure): void {
    this.failures += 1;
    this.lastFailure = how;
    if (this.isAvoided(nowMs)) return;
    const { retryFailedPathMs, maxRetryFailedPathMs } = this.#pauses;
    this.#pauseMs =
      this.#pauseMs === 0 ? retryFailedPathMs : Math.min(this.#pauseMs * 2, maxRetryFailedPathMs);
    this.#avoidedUntilMs = nowMs + this.#pauseMs;
  }

  isAvoided(nowMs: number): boolean {
    return nowMs < this.#avoidedUntilMs;
  }

  /** 0 if the path may be used. */
  retryInMs(nowMs: number): number {
    return Math.max(0, this.#avoidedUntilMs - nowMs);
  }
}
