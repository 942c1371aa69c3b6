import { SessionClock, type Ticking } from "@sluice/client/internal/net/session-clock";
import { contain } from "@sluice/client/internal/observability/faults";

/** A callback that runs once per `set`. Its owner reuses it without allocating. */
export interface WheelEntry {
  run(): void;
  /** Set by the wheel. */
  dueMs: number;
  slot: number;
}

/** How late an entry can be: a hundredth of the shortest probe period. */
const WHEEL_TICK_MS = 10;
const SLOTS = 1_024;
const IDLE = -1;

/**
 * Keeps thousands of deadlines on one timer, in slots of 10 ms; distant entries go round again. The
 * timer runs only while there are entries, and never keeps the process alive.
 */
export class TimerWheel implements Ticking {
  readonly #clock: SessionClock;
  readonly #slots: Set<WheelEntry>[] = Array.from({ length: SLOTS }, () => new Set<WheelEntry>());
  #size = 0;
  /** The last emptied slot, counted from the clock's start. */
  #doneTick = 0;

  constructor(clock: SessionClock = new SessionClock(WHEEL_TICK_MS)) {
    this.#clock = clock;
  }

  /** Milliseconds of a monotonic clock. */
  now(): number {
    return this.#clock.now();
  }

  /** A new entry that is not scheduled. */
  entry(run: () => void): WheelEntry {
    return { run, dueMs: 0, slot: IDLE };
  }

  /**
   * Schedules the entry for that time, or for the next tick if the time has passed. Replaces the
   * entry's earlier time.
   */
  set(entry: WheelEntry, dueMs: number): void {
    this.clear(entry);
    if (this.#size === 0) {
      this.#doneTick = Math.floor(this.now() / WHEEL_TICK_MS);
      this.#clock.add(this);
    }
    const tick = Math.max(Math.ceil(dueMs / WHEEL_TICK_MS), this.#doneTick + 1);
    entry.dueMs = dueMs;
    entry.slot = tick % SLOTS;
    this.#slotAt(tick).add(entry);
    this.#size++;
  }

  clear(entry: WheelEntry): void {
    if (entry.slot === IDLE) return;
    this.#slotAt(entry.slot).delete(entry);
    entry.slot = IDLE;
    if (--this.#size === 0) this.#clock.delete(this);
  }

  get size(): number {
    return this.#size;
  }

  tick(nowMs: number): void {
    // A stopped clock returns infinity; no probe runs then.
    if (nowMs === Number.POSITIVE_INFINITY) return;
    const lastTick = Math.floor(nowMs / WHEEL_TICK_MS);
    // After a long sleep, visits each slot once, and not once for every missed turn.
    let tick = Math.max(this.#doneTick + 1, lastTick - SLOTS + 1);
    const due: WheelEntry[] = [];
    for (; tick <= lastTick; tick++) {
      for (const entry of this.#slotAt(tick)) if (entry.dueMs <= nowMs) due.push(entry);
    }
    this.#doneTick = Math.max(this.#doneTick, lastTick);
    due.sort((one, other) => one.dueMs - other.dueMs);
    for (const entry of due) {
      // An earlier entry may have cancelled or postponed this entry.
      if (entry.slot === IDLE || entry.dueMs > nowMs) continue;
      this.clear(entry);
      contain("probe", entry.run, ignore);
    }
  }

  #slotAt(tick: number): Set<WheelEntry> {
    return this.#slots[tick % SLOTS] as Set<WheelEntry>;
  }
}

function ignore(): void {}
