import type { RequestSource } from "../access/authn/authenticator.ts";
import { type StatusError, tooManyRequests } from "../api/status.ts";
import type { Limits } from "../config/sections/limits.ts";
import type { HttpDownstream } from "../http/downstream/http-downstream.ts";
import { SlowBodies } from "../http/slow-bodies.ts";
import { FairQueue } from "../net/fair-queue.ts";
import type { IncomingStreaming } from "../sessions/incoming-request.ts";
import { isLongRunning } from "./exchange-times.ts";

export type SeatLimits = Pick<
  Limits,
  | "maxConcurrentRequests"
  | "maxConcurrentRequestsPerUser"
  | "maxLongRunningRequests"
  | "maxLongRunningRequestsPerUser"
>;

/** So long a request waits for a seat, a quarter of kube-apiserver's time for a request, as API Priority and Fairness has it. */
export const SEAT_WAIT_MS = 15_000;
/** Health checks at a time, and of one address: they are answered while nothing else is. */
export const MAX_HEALTH_CHECKS = 100;
export const MAX_HEALTH_CHECKS_PER_ADDRESS = 20;

/** As kube-apiserver says it. */
const RETRY_AFTER_SECONDS = 1;
const HEALTH_CHECK = /^\/(?:healthz|livez|readyz)(?:[/?]|$)/;

/**
 * Seats of a listener's plain requests: of the client's address, then of its user. Watches and
 * followed logs have their own. Requests whose bodies do not come wait beside the seats.
 */
export class RequestSeats {
  readonly #arriving: FairQueue;
  readonly #users: FairQueue;
  /** Of addresses, for requests that the API server authenticates. */
  readonly #unknown: FairQueue;
  readonly #longRunning: FairQueue;
  readonly #slowBodies: SlowBodies;
  readonly #healthChecks = new FairQueue({
    seats: MAX_HEALTH_CHECKS,
    seatsPerFlow: MAX_HEALTH_CHECKS_PER_ADDRESS,
    maxWaiting: MAX_HEALTH_CHECKS,
    onlyModestFlowsWait: true,
    maxWaitMs: SEAT_WAIT_MS,
  });

  constructor(limits: SeatLimits) {
    const { maxConcurrentRequests: seats, maxConcurrentRequestsPerUser: seatsPerFlow } = limits;
    const requests = { seats, seatsPerFlow, maxWaiting: seats, maxWaitMs: SEAT_WAIT_MS };
    // These are held briefly: an address that has its share waits for its next one, connection by connection.
    this.#arriving = new FairQueue(requests);
    this.#unknown = new FairQueue(requests);
    this.#users = new FairQueue({ ...requests, onlyModestFlowsWait: true });
    this.#slowBodies = new SlowBodies({ places: seats, placesPerFlow: seatsPerFlow });
    this.#longRunning = new FairQueue({
      seats: limits.maxLongRunningRequests,
      seatsPerFlow: limits.maxLongRunningRequestsPerUser,
      maxWaiting: 0,
    });
  }

  /**
   * Takes a seat of the request's address, until the exchange is over or its user is known. Resolves
   * with what takes the user's seat instead, once. Both reject with StatusError 429.
   */
  async arrive(
    downstream: HttpDownstream,
    { address, connection }: RequestSource,
  ): Promise<NonNullable<IncomingStreaming["admit"]>> {
    const { target, hasBody } = downstream;
    if (!hasBody && HEALTH_CHECK.test(target)) {
      await seat(this.#healthChecks, address, connection, downstream);
      return async () => undefined;
    }
    const isLong = isLongRunning(target);
    const arriving = isLong ? this.#longRunning : this.#arriving;
    const arrived = await seat(arriving, `address ${address}`, connection, downstream);
    let isAdmitted = false;
    return async (name, isUnknown = false) => {
      if (isAdmitted) return undefined;
      isAdmitted = true;
      arrived.leave();
      const users = isLong ? this.#longRunning : this.#users;
      const queue = isUnknown && !isLong ? this.#unknown : users;
      const taken =
        isLong || downstream.isBodyComplete
          ? await seat(queue, name, connection, downstream)
          : await this.#seatWithBody(queue, name, connection, downstream);
      return taken && ((newName) => taken.pass(users, newName));
    };
  }

  /** A seat for as long as the body comes: until it begins, and once it is slow, the request waits beside the seats. */
  async #seatWithBody(
    queue: FairQueue,
    flow: string,
    lane: string,
    downstream: HttpDownstream,
  ): Promise<Seat | undefined> {
    const hasBegun = await this.#slowBodies.begins(flow, downstream);
    if (hasBegun === undefined) throw tooMany();
    if (!hasBegun) return undefined;
    const taken = await seat(queue, flow, lane, downstream);
    this.#slowBodies.watchSeat(flow, downstream, taken.leave);
    return taken;
  }
}

interface Seat {
  leave(): void;
  /** To another flow, where that may have one more. */
  pass(queue: FairQueue, flow: string): void;
}

/** Holds a seat until the exchange is over, or it is left. */
async function seat(queue: FairQueue, flow: string, lane: string, downstream: HttpDownstream): Promise<Seat> {
  const seated = queue.acquire(flow, lane);
  if (seated === false || (seated !== true && !(await seated))) throw tooMany();
  let release: (() => void) | undefined = () => queue.release(flow);
  const leave = (): void => {
    release?.();
    release = undefined;
  };
  downstream.onClose(leave);
  return {
    leave,
    pass: (next, nextFlow) => {
      if (release === undefined || !next.tryAcquire(nextFlow)) return;
      release();
      release = () => next.release(nextFlow);
    },
  };
}

function tooMany(): StatusError {
  return tooManyRequests("Too many requests, please try again later.", RETRY_AFTER_SECONDS);
}
