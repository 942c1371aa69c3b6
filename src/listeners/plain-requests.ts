import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { contain } from "@sluice/client/internal/observability/faults";
import { isLongRunning } from "./exchange-times.ts";

/** A member of at most one InFlight at a time; its index is -1 while it is in none. */
interface InFlightMember {
  inFlightIndex: number;
}

// V8 replaces a Set's table every few dozen additions, and each table refers to the next. One in the
// old space keeps later members, and everything they refer to, from being collected young.
/** A set of items that come and go with each request. */
export class InFlight<Member extends InFlightMember> implements Iterable<Member> {
  readonly #members: Member[] = [];
  size = 0;

  add(member: Member): void {
    if (member.inFlightIndex !== -1) return;
    member.inFlightIndex = this.size;
    this.size = this.#members.push(member);
  }

  /** The last member takes over the index. Ignores members of another InFlight. */
  delete(member: Member): void {
    const { inFlightIndex: index } = member;
    if (this.#members[index] !== member) return;
    member.inFlightIndex = -1;
    const last = this.#members.pop();
    this.size -= 1;
    if (last === undefined || last === member) return;
    this.#members[index] = last;
    last.inFlightIndex = index;
  }

  /** Iterates over the present members, even while members are added or deleted. */
  [Symbol.iterator](): Iterator<Member> {
    return this.#members.slice()[Symbol.iterator]();
  }
}

/**
 * How often stalled clients are looked for within `streamIdleMs`. A client may stay that much
 * longer.
 */
const LOOKS_PER_IDLE_TIME = 4;

/**
 * The plain requests in progress, for which a shutdown waits. It does not wait for watches and
 * followed logs, since their clients reconnect.
 */
export class PlainRequests {
  readonly #maxInFlight: number;
  readonly #emptied: (() => void)[] = [];
  readonly #inFlight = new InFlight<HttpDownstream>();
  /** Watches and followed logs. */
  readonly #longRunning = new InFlight<HttpDownstream>();
  readonly #streamIdleMs: number;
  #look: NodeJS.Timeout | undefined;
  #isDraining = false;

  /** `streamIdleMs`: how long a client may take none of the queued bytes. */
  constructor(maxInFlight: number, streamIdleMs: number) {
    this.#maxInFlight = maxInFlight;
    this.#streamIdleMs = streamIdleMs;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /**
   * Call this for each request before answering it. False if there are too many; then refuse it.
   */
  add(downstream: HttpDownstream): boolean {
    if (isLongRunning(downstream.target)) {
      if (this.#isDraining) downstream.closeConnectionAfter();
      this.#longRunning.add(downstream);
      this.#look ??= this.#startLooking();
      downstream.onClose(() => this.#longRunning.delete(downstream));
      return true;
    }
    if (!this.begin(downstream)) return false;
    downstream.onClose(() => this.end(downstream));
    return true;
  }

  /** Like `add`, for a caller that tracks the request itself. After true it must call `end`. */
  begin(downstream: HttpDownstream): boolean {
    if (this.#isDraining) downstream.closeConnectionAfter();
    if (this.#inFlight.size >= this.#maxInFlight) return false;
    this.#inFlight.add(downstream);
    this.#look ??= this.#startLooking();
    return true;
  }

  end(downstream: HttpDownstream): void {
    this.#inFlight.delete(downstream);
    if (this.#inFlight.size === 0) for (const resolve of this.#emptied.splice(0)) resolve();
  }

  /**
   * One timer for all exchanges, and no work when bytes pass. A client's time runs while bytes are
   * queued for it.
   */
  #startLooking(): NodeJS.Timeout {
    return setInterval(() => {
      if (this.#inFlight.size + this.#longRunning.size === 0) {
        clearInterval(this.#look);
        this.#look = undefined;
      }
      for (const requests of [this.#inFlight, this.#longRunning])
        for (const downstream of requests)
          contain(
            "listener",
            () => downstream.expectTaking(downstream.hasTakenAll ? 0 : this.#streamIdleMs),
            () => downstream.abort(),
          );
    }, this.#streamIdleMs / LOOKS_PER_IDLE_TIME).unref();
  }

  /** Closes each connection after its next answer. Call when sessions begin to drain. */
  drain(): void {
    this.#isDraining = true;
    for (const downstream of this.#inFlight) downstream.closeConnectionAfter();
  }

  /**
   * Resolves when the last answer has been sent, or after `timeoutMs`. Call after `drain`, when nothing
   * is accepted any more.
   */
  finish(timeoutMs: number): Promise<void> {
    if (this.#inFlight.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#emptied.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
