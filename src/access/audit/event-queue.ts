import { setTimeout as passed } from "node:timers/promises";
import type { AuditEvent } from "./audit-event.ts";
import type { DeliveryThrottle } from "./delivery-throttle.ts";

export interface EventQueueOptions {
  /** Stores the events, all or none; called with the next ones only when it is done. */
  deliver(events: readonly AuditEvent[]): Promise<void>;
  /** Events that wait, those in delivery included. Past it: lost. */
  readonly maxQueuedEvents: number;
  readonly maxBatchEvents: number;
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
  readonly #events: AuditEvent[] = [];
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

  /** False when there is no room: the event is lost, and counted as lost. */
  push(event: AuditEvent): boolean {
    if (this.#events.length >= this.#options.maxQueuedEvents) {
      this.#options.onLost?.(1);
      return false;
    }
    this.#events.push(event);
    this.#pushed += 1;
    if (this.#events.length >= this.#options.maxBatchEvents && this.#failure === undefined)
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
    const lost = this.#events.splice(0).length;
    this.#delivered = this.#pushed;
    if (lost > 0) this.#options.onLost?.(lost);
  }

  /** Nobody waits for events that came after his own. */
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
    try {
      while (this.#events.length > 0) {
        const turnMs = this.#options.throttle?.takeTurn() ?? 0;
        if (turnMs > 0) await passed(turnMs);
        const batch = this.#events.slice(0, maxBatchEvents);
        // Stopped while it waited.
        if (batch.length === 0) break;
        await this.#options.deliver(batch);
        this.#events.splice(0, batch.length);
        this.#failure = undefined;
        this.#retryMs = retryMs;
        this.#delivered += batch.length;
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
}
