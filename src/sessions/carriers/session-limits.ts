import type { SessionTimeouts, Traffic } from "./session.ts";

/** What a limit asks for at this moment. */
export type LimitDue =
  | { readonly type: "warn"; readonly message: string }
  | { readonly type: "end"; readonly cause: "idle" | "time-limit"; readonly message: string };

/** How long before the cut a terminal is told, or half of the limit where that is less. */
export const WARN_BEFORE_MS = 60_000;

/** The idle limit of a session and, where policy sets one, its total duration. Each warns once before it ends the session. */
export class SessionLimits {
  readonly #startedMs: number;
  readonly #timeouts: SessionTimeouts;
  #hasWarnedOfEnd = false;
  #hasWarnedOfIdle = false;

  constructor(startedMs: number, timeouts: SessionTimeouts) {
    this.#startedMs = startedMs;
    this.#timeouts = timeouts;
  }

  /** To be asked at every tick: what moved is seen here. */
  check(nowMs: number, traffic: Traffic): LimitDue | undefined {
    const { idleMs, maxDurationMs = Number.POSITIVE_INFINITY } = this.#timeouts;
    const idleLeftMs = idleMs - traffic.idleForMs(nowMs);
    const leftMs = maxDurationMs - (nowMs - this.#startedMs);
    if (leftMs <= 0) {
      return { type: "end", cause: "time-limit", message: "the session reached its time limit" };
    }
    if (idleLeftMs <= 0) return { type: "end", cause: "idle", message: "the session was idle for too long" };
    if (!this.#hasWarnedOfEnd && leftMs <= warningTimeOf(maxDurationMs)) {
      this.#hasWarnedOfEnd = true;
      return { type: "warn", message: `this session reaches its time limit in ${seconds(leftMs)}` };
    }
    const isIdleSoon = idleLeftMs <= warningTimeOf(idleMs);
    // Whoever moves again is warned again the next time.
    if (!isIdleSoon) this.#hasWarnedOfIdle = false;
    if (!isIdleSoon || this.#hasWarnedOfIdle) return undefined;
    this.#hasWarnedOfIdle = true;
    return { type: "warn", message: `this session is idle and will be ended in ${seconds(idleLeftMs)}` };
  }
}

/** A warning on a line of its own, for whoever sits at a terminal. */
export function terminalWarning(message: string): Uint8Array {
  return new TextEncoder().encode(`\r\nsluice: ${message}\r\n`);
}

function warningTimeOf(limitMs: number): number {
  return Math.min(WARN_BEFORE_MS, limitMs / 2);
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`;
}
