import { setTimeout as passed } from "node:timers/promises";

/** The backend works but will never accept these events. */
export class EventsRefused extends Error {
  override readonly name = "EventsRefused";
}

export interface EventQueueOptions {
  /**
   * Stores all events or none, a JSON line each; one call at a time. Rejects with EventsRefused if
   * the backend refuses them: the queue halves the batch, and drops an event refused alone.
   */
  deliver(lines: readonly string[]): Promise<void>;
  /** Limit for queued events, including those in delivery; further ones are dropped. */
  readonly maxQueuedEvents: number;
  /** The same limit, in characters. */
  readonly maxQueuedCharacters: number;
  readonly maxBatchEvents: number;
  /** A longer event is sent alone. */
  readonly maxBatchCharacters: number;
  /** How long the first event waits for more events. */
  readonly maxWaitMs: number;
  /** The delay after a failure; doubles up to the longest. */
  readonly retryMs: number;
  readonly maxRetryMs: number;
  /** Limits how often batches are sent; absent: no limit. */
  readonly throttle?: DeliveryThrottle | undefined;
  onStored?(count: number): void;
  onLost?(count: number): void;
  onFailure?(error: Error): void;
}

/**
 * Delivers events to a backend: in order, in batches, within bounds, and repeatedly until it
 * succeeds.
 */
export class EventQueue {
  readonly #options: EventQueueOptions;
  readonly #lines: string[] = [];
  #characters = 0;
  #waiting: {
    readonly upTo: number;
    readonly resolve: () => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  /** Counts of all events queued and delivered so far. */
  #pushed = 0;
  #delivered = 0;
  #timer: NodeJS.Timeout | undefined;
  #isDelivering = false;
  #retryMs: number;
  #failure: Error | undefined;

  constructor(options: EventQueueOptions) {
    this.#options = options;
    this.#retryMs = options.retryMs;
  }

  /** Why the last delivery failed; undefined if it succeeded. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Events waiting for delivery. */
  get waiting(): number {
    return this.#lines.length;
  }

  /** False if the queue is full: the event is dropped and counted. */
  push(line: string): boolean {
    const { maxQueuedEvents, maxQueuedCharacters } = this.#options;
    if (this.#lines.length >= maxQueuedEvents || this.#characters + line.length > maxQueuedCharacters) {
      this.#options.onLost?.(1);
      return false;
    }
    this.#lines.push(line);
    this.#characters += line.length;
    this.#pushed += 1;
    if (this.#lines.length >= this.#options.maxBatchEvents && this.#failure === undefined)
      this.#deliverSoon(0);
    else this.#deliverSoon(this.#failure === undefined ? this.#options.maxWaitMs : this.#retryMs);
    return true;
  }

  /**
   * Delivers now, regardless of delays. Resolves once all present events are stored; rejects if a
   * delivery failed, and keeps them.
   */
  flush(): Promise<void> {
    if (this.#delivered === this.#pushed) return Promise.resolve();
    const upTo = this.#pushed;
    const flushed = new Promise<void>((resolve, reject) => this.#waiting.push({ upTo, resolve, reject }));
    if (!this.#isDelivering) void this.#deliver();
    return flushed;
  }

  /** Stops deliveries. */
  stop(): void {
    clearTimeout(this.#timer);
    const lost = this.#lines.splice(0).length;
    this.#characters = 0;
    this.#delivered = this.#pushed;
    if (lost > 0) this.#options.onLost?.(lost);
  }

  /** A caller waits only for events that were queued before it called. */
  #resolveWaiting(): void {
    const ready = this.#waiting.filter(({ upTo }) => upTo <= this.#delivered);
    this.#waiting = this.#waiting.filter(({ upTo }) => upTo > this.#delivered);
    for (const { resolve } of ready) resolve();
  }

  #deliverSoon(waitMs: number): void {
    if (this.#isDelivering || (this.#timer !== undefined && waitMs > 0)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#deliver(), waitMs).unref();
  }

  async #deliver(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDelivering = true;
    const { maxBatchEvents, retryMs, maxRetryMs, onStored, onFailure } = this.#options;
    let maxEvents = maxBatchEvents;
    try {
      while (this.#lines.length > 0) {
        const turnMs = this.#options.throttle?.takeTurn() ?? 0;
        if (turnMs > 0) await passed(turnMs);
        const batch = this.#batch(maxEvents);
        // The queue was stopped during the wait.
        if (batch.length === 0) break;
        try {
          await this.#options.deliver(batch);
        } catch (error) {
          if (!(error instanceof EventsRefused)) throw error;
          if (batch.length === 1) this.#lose(error);
          else maxEvents = Math.ceil(batch.length / 2);
          continue;
        }
        this.#remove(batch.length);
        maxEvents = maxBatchEvents;
        this.#failure = undefined;
        this.#retryMs = retryMs;
        onStored?.(batch.length);
        this.#resolveWaiting();
      }
      this.#isDelivering = false;
    } catch (reason) {
      const error = reason instanceof Error ? reason : new Error(String(reason));
      this.#isDelivering = false;
      this.#failure = error;
      onFailure?.(error);
      for (const { reject } of this.#waiting.splice(0)) reject(error);
      this.#deliverSoon(this.#retryMs);
      this.#retryMs = Math.min(maxRetryMs, this.#retryMs * 2);
    }
  }

  /** The first events that fit into a batch; at least one if there is any. */
  #batch(maxEvents: number): string[] {
    let characters = 0;
    let count = 0;
    for (const line of this.#lines) {
      characters += line.length;
      if (count === maxEvents || (count > 0 && characters > this.#options.maxBatchCharacters)) break;
      count += 1;
    }
    return this.#lines.slice(0, count);
  }

  #remove(count: number): void {
    for (const line of this.#lines.splice(0, count)) this.#characters -= line.length;
    this.#delivered += count;
  }

  /** Drops the first event if the backend refused it alone: it would block the others forever. */
  #lose(error: EventsRefused): void {
    this.#remove(1);
    this.#failure = error;
    this.#options.onLost?.(1);
    this.#options.onFailure?.(error);
    const refused = this.#waiting.filter(({ upTo }) => upTo <= this.#delivered);
    this.#waiting = this.#waiting.filter(({ upTo }) => upTo > this.#delivered);
    for (const { reject } of refused) reject(error);
  }
}

interface DeliveryThrottleOptions {
  readonly perSecond: number;
  /** Deliveries that may follow each other without a delay after a pause. */
  readonly burst: number;
}

/** A token bucket without a timer, evaluated on each delivery. */
export class DeliveryThrottle {
  readonly #intervalMs: number;
  readonly #burst: number;
  readonly #nowMs: () => number;
  /** When the bucket will be full again. */
  #fullAtMs = Number.NEGATIVE_INFINITY;

  /** `nowMs` must be monotonic. */
  constructor({ perSecond, burst }: DeliveryThrottleOptions, nowMs: () => number) {
    this.#intervalMs = 1_000 / perSecond;
    this.#burst = burst;
    this.#nowMs = nowMs;
  }

  /** Takes one delivery's token; returns how many milliseconds it must wait, 0 for none. */
  takeTurn(): number {
    const nowMs = this.#nowMs();
    this.#fullAtMs = Math.max(nowMs, this.#fullAtMs) + this.#intervalMs;
    return Math.max(0, this.#fullAtMs - nowMs - this.#burst * this.#intervalMs);
  }
}
