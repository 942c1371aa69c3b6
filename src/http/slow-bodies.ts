import type { HttpDownstream } from "./downstream/http-downstream.ts";

/** A request gives up its seat when its body brings less than MIN_BODY_BYTES in this time. */
export const BODY_LOOK_MS = 1_000;
export const MIN_BODY_BYTES: number = 16 * 1024;

export interface SlowBodiesOptions {
  /** Waiting requests, over all flows. */
  readonly places: number;
  readonly placesPerFlow: number;
}

interface Held {
  readonly downstream: HttpDownstream;
  readonly displace: () => void;
}

/**
 * Requests that wait for their bodies without a seat. If all places are taken, the largest flow loses
 * its newest, as in FairQueue. docs/decisions/0048-fair-shares.md
 */
export class SlowBodies {
  readonly #options: SlowBodiesOptions;
  readonly #flows = new Map<string, Set<Held>>();
  #size = 0;

  constructor(options: SlowBodiesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Acquires a place until the exchange is over or the result is called. `displace`: called when the
   * place is lost, possibly at once.
   */
  hold(flow: string, downstream: HttpDownstream, displace: () => void): () => void {
    const own = this.#flows.get(flow)?.size ?? 0;
    const isWithinShare = own < this.#options.placesPerFlow;
    if (!isWithinShare || (this.#size >= this.#options.places && !this.#displaceFor(own))) {
      displace();
      return () => {};
    }
    const held: Held = { downstream, displace };
    const members = this.#flows.get(flow) ?? new Set();
    this.#flows.set(flow, members.add(held));
    this.#size += 1;
    const leave = (): void => this.#leave(flow, members, held);
    downstream.onClose(leave);
    return leave;
  }

  /** Calls `leaveSeat` once the body is slow; the request then waits in a place instead. */
  watchSeat(flow: string, downstream: HttpDownstream, leaveSeat: () => void): void {
    whenBodySlow(downstream, () => {
      leaveSeat();
      this.hold(flow, downstream, () => downstream.abort());
    });
  }

  /**
   * Waits for the body's first bytes without reading them. False: they did not come within BODY_LOOK_MS,
   * and the request keeps its place. Undefined: it lost the place, or the client has left.
   */
  async begins(flow: string, downstream: HttpDownstream): Promise<boolean | undefined> {
    const { body } = downstream;
    if (body.readableLength > 0 || body.readableEnded) return true;
    return await new Promise((resolve) => {
      let isWaiting = true;
      const settle = (outcome: boolean | undefined): void => {
        if (!isWaiting) return;
        isWaiting = false;
        clearTimeout(timer);
        body.off("readable", begun);
        // Node lets the body flow again one turn after its last 'readable' listener is removed.
        setImmediate(resolve, outcome);
      };
      const begun = (): void => {
        leave();
        settle(true);
      };
      const timer = setTimeout(settle, BODY_LOOK_MS, false);
      body.on("readable", begun);
      const leave = this.hold(flow, downstream, () => {
        if (isWaiting) settle(undefined);
        else downstream.abort();
      });
      downstream.onClose(() => settle(undefined));
    });
  }

  /** Displaces the largest flow's newest request with an incomplete body. False: no flow has more than `own` + 1. */
  #displaceFor(own: number): boolean {
    let largest: [flow: string, members: Set<Held>] | undefined;
    for (const each of this.#flows) if (each[1].size > (largest?.[1].size ?? own + 1)) largest = each;
    if (largest === undefined) return false;
    const [flow, members] = largest;
    const newest = [...members].findLast(({ downstream }) => !downstream.isBodyComplete);
    if (newest === undefined) return false;
    this.#leave(flow, members, newest);
    newest.displace();
    return true;
  }

  #leave(flow: string, members: Set<Held>, held: Held): void {
    if (!members.delete(held)) return;
    this.#size -= 1;
    if (members.size === 0) this.#flows.delete(flow);
  }
}

/**
 * Calls back once if a body that is being read brings less than MIN_BODY_BYTES in BODY_LOOK_MS and is
 * not complete.
 */
export function whenBodySlow(downstream: HttpDownstream, onSlow: () => void): void {
  const { body } = downstream;
  let bytes: number | undefined;
  const count = (chunk: Uint8Array): void => {
    bytes = (bytes ?? 0) + chunk.byteLength;
  };
  const stop = (): void => {
    clearInterval(timer);
    body.off("data", count);
  };
  const timer = setInterval(() => {
    if (downstream.isBodyComplete || body.destroyed) stop();
    // Not the client's fault: the upstream does not take the body, or has not begun to.
    else if (body.readableFlowing !== true) bytes = bytes === undefined ? undefined : MIN_BODY_BYTES;
    // A listener would start a body that is not read yet, so counting starts at the first look.
    else if (bytes === undefined) {
      bytes = 0;
      body.on("data", count);
    } else if (bytes < MIN_BODY_BYTES) {
      stop();
      onSlow();
    } else bytes = 0;
  }, BODY_LOOK_MS).unref();
  downstream.onClose(stop);
}
