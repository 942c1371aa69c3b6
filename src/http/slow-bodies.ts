import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { DisplacingSeats } from "../net/displacing-seats.ts";

/**
 * How long a request's body may take to deliver MIN_BODY_BYTES, 16 KiB. Past it the request gives
 * up its seat.
 */
const BODY_LOOK_MS = 1_000;
const MIN_BODY_BYTES: number = 16 * 1024;

interface SlowBodiesOptions {
  /** The most waiting requests of all flows together. */
  readonly places: number;
  readonly placesPerFlow: number;
}

/**
 * Requests that wait for their bodies without a seat. If all places are taken, the largest flow
 * that has an incomplete body loses the newest such request. docs/decisions/0048-fair-shares.md
 */
export class SlowBodies {
  readonly #places: DisplacingSeats;

  constructor({ places, placesPerFlow }: SlowBodiesOptions) {
    this.#places = new DisplacingSeats({ seats: places, seatsPerFlow: placesPerFlow });
  }

  get size(): number {
    return this.#places.held;
  }

  /**
   * Takes a place until the exchange is over or the returned function is called. Calls `displace`
   * if the place is lost, possibly at once.
   */
  hold(flow: string, downstream: HttpDownstream, displace: () => void): () => void {
    const isDisplaceable = (): boolean => !downstream.isBodyComplete;
    const leave = this.#places.acquire(flow, { displace, isDisplaceable });
    if (leave === undefined) {
      displace();
      return () => {};
    }
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
   * Waits for the body's first bytes without reading them. False: they did not arrive within
   * BODY_LOOK_MS, and the request keeps its place. Undefined: it lost the place, or the client has
   * left.
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
}

/**
 * Calls `onSlow` once if a body that is being read delivers less than MIN_BODY_BYTES in
 * BODY_LOOK_MS and is not complete.
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
    // The client is not at fault if the upstream does not take the body, or has not begun to.
    else if (body.readableFlowing !== true) bytes = bytes === undefined ? undefined : MIN_BODY_BYTES;
    // A 'data' listener would start the flow of a body that is not read yet, so counting starts
    // here.
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
