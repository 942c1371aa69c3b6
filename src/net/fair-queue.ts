/**
 * How long a request waits for a seat or a review: a quarter of kube-apiserver's request timeout, as
 * in API Priority and Fairness. Past it: 429 with Retry-After.
 */
const QUEUE_WAIT_MS = 15_000;

/** Calls the listener when the caller is gone; at once if it already is. */
type OnGone = ((listener: () => void) => void) | undefined;

interface FairQueueOptions {
  /** Seats in total. */
  readonly seats: number;
  /**
   * Seats that one flow may hold while no other holds any. Otherwise it gets the same share of what
   * others leave, at least one seat. Absent: all, as long as no other flow wants one.
   */
  readonly seatsPerFlow?: number | undefined;
  /** Most waiting requests, over all flows. */
  readonly maxWaiting: number;
  /** True: a flow may wait only while it has less than its fair share. Absent: any flow may wait. */
  readonly onlyModestFlowsWait?: boolean | undefined;
  /** How long a request waits for a seat. Absent: QUEUE_WAIT_MS. */
  readonly maxWaitMs?: number | undefined;
}

interface Waiter {
  readonly lane: string;
  readonly settle: (isSeated: boolean) => void;
}

interface Flow {
  held: number;
  /** Waiters by lane, in turn order. */
  readonly lanes: Map<string, Waiter[]>;
  waiting: number;
}

/**
 * Seats that flows (users, addresses) share fairly, like API Priority and Fairness. A free seat goes
 * to the waiting flow with the fewest seats, and within it to its lanes (connections) in turn. If the
 * queue is full, the flow with the most waiters loses its newest to a flow with fewer.
 * docs/decisions/0048-fair-shares.md
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  readonly #flows = new Map<string, Flow>();
  #held = 0;
  #waiting = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  get held(): number {
    return this.#held;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Flows that hold a seat or wait for one. */
  get flows(): number {
    return this.#flows.size;
  }

  /** True: the flow has a seat until `release`. False: no seat is free for it now. */
  tryAcquire(flowName: string): boolean {
    const flow = this.#flows.get(flowName) ?? newFlow();
    if (!this.#seat(flow)) return false;
    this.#flows.set(flowName, flow);
    return true;
  }

  /**
   * Like `tryAcquire`, but waits for a seat if the flow may: for `maxWaitMs`, and until the caller is
   * gone. `lane`: a flow's lanes take turns.
   */
  acquire(flowName: string, lane = "", onGone?: OnGone): boolean | Promise<boolean> {
    if (this.tryAcquire(flowName)) return true;
    return this.#makeRoomFor(flowName, lane) && this.#wait(flowName, lane, onGone);
  }

  /** Call once for each seat. */
  release(flowName: string): void {
    const flow = this.#flows.get(flowName);
    if (flow === undefined || flow.held === 0) return;
    flow.held -= 1;
    this.#held -= 1;
    this.#forgetIfIdle(flowName, flow);
    while (this.#waiting > 0 && this.#seatNext());
  }

  /**
   * Gives the flow a seat, if it may have one. Keeps seats free for later flows: a flow holds at most
   * its share of the seats that the others leave. So k flows leave (1 - share)^k of all seats.
   */
  #seat(flow: Flow): boolean {
    const { seats, seatsPerFlow = seats } = this.#options;
    const { held } = flow;
    if (this.#held >= seats) return false;
    if (held > 0 && held * seats >= seatsPerFlow * (seats - this.#held + held)) return false;
    flow.held += 1;
    this.#held += 1;
    return true;
  }

  #forgetIfIdle(name: string, { held, waiting }: Flow): void {
    if (held + waiting === 0) this.#flows.delete(name);
  }

  /** Returns false if the flow may not wait. */
  #makeRoomFor(name: string, lane: string): boolean {
    const { seats, seatsPerFlow = seats, maxWaiting, onlyModestFlowsWait } = this.#options;
    const flow = this.#flows.get(name);
    const own = flow?.waiting ?? 0;
    if (onlyModestFlowsWait === true) {
      const flows = this.#flows.size + (flow === undefined ? 1 : 0);
      const share = Math.min(seatsPerFlow, Math.max(1, Math.floor(seats / flows)));
      if (own + (flow?.held ?? 0) >= share) return false;
    }
    if (this.#waiting < maxWaiting) return true;
    const largest = this.#largestWaitingFlow();
    if (largest === undefined || largest.flow.waiting < own) return false;
    const inLane = flow?.lanes.get(lane)?.length ?? 0;
    const [longestLane, waiters] = longestOf(largest.flow.lanes);
    // Within one flow, only a shorter lane displaces a waiter of a longer one.
    if (largest.flow.waiting === own && (largest.flow !== flow || waiters.length <= inLane + 1)) return false;
    const newest = waiters.at(-1);
    if (newest === undefined || longestLane === undefined) return false;
    this.#leave(largest.name, largest.flow, newest);
    newest.settle(false);
    return true;
  }

  #wait(name: string, lane: string, onGone?: OnGone): Promise<boolean> {
    const flow = this.#flows.get(name) ?? newFlow();
    this.#flows.set(name, flow);
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#leave(name, flow, waiter);
        waiter.settle(false);
      };
      const timer = setTimeout(leave, this.#options.maxWaitMs ?? QUEUE_WAIT_MS).unref();
      const waiter: Waiter = {
        lane,
        settle: (isSeated) => {
          clearTimeout(timer);
          resolve(isSeated);
        },
      };
      const waiters = flow.lanes.get(lane);
      if (waiters === undefined) flow.lanes.set(lane, [waiter]);
      else waiters.push(waiter);
      flow.waiting += 1;
      this.#waiting += 1;
      onGone?.(leave);
    });
  }

  #leave(name: string, flow: Flow, waiter: Waiter): void {
    const waiters = flow.lanes.get(waiter.lane);
    const index = waiters?.indexOf(waiter) ?? -1;
    if (waiters === undefined || index === -1) return;
    waiters.splice(index, 1);
    if (waiters.length === 0) flow.lanes.delete(waiter.lane);
    flow.waiting -= 1;
    this.#waiting -= 1;
    this.#forgetIfIdle(name, flow);
  }

  /** Gives a seat to the next waiting flow. False: none may have one. */
  #seatNext(): boolean {
    if (this.#held >= this.#options.seats) return false;
    let next: [name: string, flow: Flow] | undefined;
    for (const [name, flow] of this.#flows) {
      if (flow.waiting === 0) continue;
      if (next === undefined || flow.held < next[1].held) next = [name, flow];
    }
    if (next === undefined) return false;
    const [name, flow] = next;
    const [lane, waiters] = first(flow.lanes);
    const waiter = waiters?.[0];
    if (lane === undefined || waiters === undefined || waiter === undefined) return false;
    if (!this.#seat(flow)) return false;
    // The lane goes behind the flow's other lanes, and the flow behind others with as many seats.
    flow.lanes.delete(lane);
    flow.lanes.set(lane, waiters);
    this.#flows.delete(name);
    this.#flows.set(name, flow);
    this.#leave(name, flow, waiter);
    waiter.settle(true);
    return true;
  }

  #largestWaitingFlow(): { readonly name: string; readonly flow: Flow } | undefined {
    let largest: { name: string; flow: Flow } | undefined;
    for (const [name, flow] of this.#flows) {
      if (flow.waiting > (largest?.flow.waiting ?? 0)) largest = { name, flow };
    }
    return largest;
  }
}

function newFlow(): Flow {
  return { held: 0, lanes: new Map(), waiting: 0 };
}

function longestOf(lanes: ReadonlyMap<string, Waiter[]>): [lane: string | undefined, waiters: Waiter[]] {
  let longest: [string | undefined, Waiter[]] = [undefined, []];
  for (const [lane, waiters] of lanes) if (waiters.length > longest[1].length) longest = [lane, waiters];
  return longest;
}

function first(
  lanes: ReadonlyMap<string, Waiter[]>,
): [lane: string | undefined, waiters: Waiter[] | undefined] {
  const { value = [undefined, undefined] } = lanes.entries().next();
  return value;
}
