import type { RequestSource } from "../access/authn/authenticator.ts";
import { tooManyRequests } from "../api/status.ts";
import type { Limits } from "../config/limits.ts";
import type { HttpDownstream } from "../http/http-downstream.ts";
import { FairQueue } from "../net/fair-queue.ts";
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
 * Seats of a listener's plain requests: first of the client's address, then of its user. Above its share a user is refused at once, below
 * it waits. Watches and followed logs have their own.
 */
export class RequestSeats {
  readonly #arriving: FairQueue;
  readonly #users: FairQueue;
  readonly #longRunning: FairQueue;
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
    this.#users = new FairQueue({ ...requests, onlyModestFlowsWait: true });
    this.#longRunning = new FairQueue({
      seats: limits.maxLongRunningRequests,
      seatsPerFlow: limits.maxLongRunningRequestsPerUser,
      maxWaiting: 0,
    });
  }

  /**
   * Takes a seat of the request's address, until the exchange is over or its user is known. Resolves with what takes the user's
   * seat. Both reject with StatusError 429.
   */
  async arrive(
    downstream: HttpDownstream,
    { address, connection }: RequestSource,
  ): Promise<(userName: string) => Promise<void>> {
    const { target, hasBody } = downstream;
    if (!hasBody && HEALTH_CHECK.test(target)) {
      await seat(this.#healthChecks, address, connection, downstream);
      return async () => {};
    }
    const isLong = isLongRunning(target);
    const arriving = isLong ? this.#longRunning : this.#arriving;
    const ofUsers = isLong ? this.#longRunning : this.#users;
    const leave = await seat(arriving, `address ${address}`, connection, downstream);
    let isAdmitted = false;
    return async (userName) => {
      if (isAdmitted) return;
      isAdmitted = true;
      leave();
      await seat(ofUsers, `user ${userName}`, connection, downstream);
    };
  }
}

/** Holds a seat until the exchange is over, or the result is called. */
async function seat(
  queue: FairQueue,
  flow: string,
  lane: string,
  downstream: HttpDownstream,
): Promise<() => void> {
  const seated = queue.acquire(flow, lane);
  if (seated === false || (seated !== true && !(await seated))) {
    throw tooManyRequests("Too many requests, please try again later.", RETRY_AFTER_SECONDS);
  }
  let isHeld = true;
  const leave = (): void => {
    if (isHeld) queue.release(flow);
    isHeld = false;
  };
  downstream.onClose(leave);
  return leave;
}
