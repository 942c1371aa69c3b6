import { setTimeout as passed } from "node:timers/promises";
import type { DeliveryThrottle } from "./delivery-throttle.ts";

/** The backend is there and does not take these events, however often they come. */
export class EventsRefused extends Error {
  override readonly name = "EventsRefused";
}

export interface EventQueueOptions {
  /**
   * Stores events, a line of JSON each, all or none; called again when it is done. Rejects with EventsRefused when the backend refuses
   * them: they are halved, and one refused alone is lost.
   */
  deliver(lines: readonly string[]): Promise<void>;
  /** Events that wait, those in delivery included. Past it: lost. */
  readonly maxQueuedEvents: number;
  /** The same for their characters. */
  readonly maxQueuedCharacters: number;
  readonly maxBatchEvents: number;
  /** A longer event is a batch of its own. */
  readonly maxBatchCharacters: number;
  /** How long the first event waits for others. */
  readonly maxWaitMs: number;
  /** First wait after a failure; doubled each time up to the longest. */
  readonly retryMs: number;
  readonly maxRetryMs: number;
  /** Absent: batches follow one another at once. */
  readonly throttle?: DeliveryThrottle | undefined;
  onStored?(count: number): void;
  onLost?(count: number): void;
  onFailure?(error: Error): void;
}

/** Events on their way to a backend: in order, in batches, bounded, and delivered again until it succeeds. */
export class EventQueue {
  readonly #options: EventQueueOptions;
  readonly #lines: string[] = [];
  #characters = 0;
  #waiting: {
    readonly upTo: number;
    readonly resolve: () => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  /** How many events were ever taken, and how many of them were delivered. */
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

  /** Why the last delivery failed; undefined after one that succeeded. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Events that wait to be delivered. */
  get waiting(): number {
    return this.#lines.length;
  }

  /** False when there is no room: the event is lost, and counted as lost. */
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

  /** Delivers now, whatever the waits. Resolves when all events so far are stored, rejects when a delivery failed; they then stay. */
  flush(): Promise<void> {
    if (this.#delivered === this.#pushed) return Promise.resolve();
    const upTo = this.#pushed;
    const flushed = new Promise<void>((resolve, reject) => this.#waiting.push({ upTo, resolve, reject }));
    if (!this.#isDelivering) void this.#deliver();
    return flushed;
  }

  /** Nothing is delivered any more. */
  stop(): void {
    clearTimeout(this.#timer);
    const lost = this.#lines.splice(0).length;
    this.#characters = 0;
    this.#delivered = this.#pushed;
    if (lost > 0) this.#options.onLost?.(lost);
  }

  /** A caller does not wait for later events than its own. */
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
        // Stopped while it waited.
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

  /** The first ones, as many as may go together; at least one where there is one. */
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

  /** The first event, refused alone: it would be refused for ever, and those behind it would wait for it. */
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
