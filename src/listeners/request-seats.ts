import type { StatusError } from "@sluice/client/internal/api/status";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { RequestSource } from "../access/authn/authenticator.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { Limits } from "../config/sections/limits.ts";
import { SlowBodies } from "../http/slow-bodies.ts";
import { DisplacingSeats } from "../net/displacing-seats.ts";
import { FairQueue } from "../net/fair-queue.ts";
import type { IncomingStreaming } from "../sessions/incoming-request.ts";
import { isLongRunning } from "./exchange-times.ts";

type SeatLimits = Pick<
  Limits,
  | "maxConcurrentRequests"
  | "maxConcurrentRequestsPerUser"
  | "maxLongRunningRequests"
  | "maxLongRunningRequestsPerUser"
>;

/** Concurrent health checks without a body; they need no seat. Past it: 429 with Retry-After. */
const MAX_HEALTH_CHECKS = 100;
/** Concurrent health checks from one address. Past it: 429 with Retry-After. */
const MAX_HEALTH_CHECKS_PER_ADDRESS = 20;

/** kube-apiserver's value. */
const RETRY_AFTER_SECONDS = 1;
const HEALTH_CHECK = /^\/(?:healthz|livez|readyz)(?:[/?]|$)/;

/**
 * Seats for a listener's plain requests: first the client address's, then the user's. Watches and
 * followed logs have their own. Requests with late bodies wait without a seat.
 */
export class RequestSeats {
  readonly #arriving: FairQueue;
  readonly #users: FairQueue;
  /** Seats by address, for requests that the API server authenticates. */
  readonly #unknown: FairQueue;
  /** Seats by address, for long-running requests that are authenticating. */
  readonly #arrivingLong: FairQueue;
  readonly #longRunning: DisplacingSeats;
  readonly #slowBodies: SlowBodies;
  readonly #healthChecks = new FairQueue({
    seats: MAX_HEALTH_CHECKS,
    seatsPerFlow: MAX_HEALTH_CHECKS_PER_ADDRESS,
    maxWaiting: MAX_HEALTH_CHECKS,
    onlyModestFlowsWait: true,
  });

  constructor(limits: SeatLimits) {
    const { maxConcurrentRequests: seats, maxConcurrentRequestsPerUser: seatsPerFlow } = limits;
    const requests = { seats, seatsPerFlow, maxWaiting: seats };
    // This seat is held only briefly, so an address that has its share waits for its next one; its
    // connections take turns.
    this.#arriving = new FairQueue(requests);
    this.#unknown = new FairQueue(requests);
    this.#users = new FairQueue({ ...requests, onlyModestFlowsWait: true });
    this.#slowBodies = new SlowBodies({ places: seats, placesPerFlow: seatsPerFlow });
    const longRunning = {
      seats: limits.maxLongRunningRequests,
      seatsPerFlow: limits.maxLongRunningRequestsPerUser,
    };
    this.#arrivingLong = new FairQueue({ ...longRunning, maxWaiting: 0 });
    this.#longRunning = new DisplacingSeats(longRunning);
  }

  /**
   * Acquires a seat for the request's address until the exchange ends or its user is known. Resolves
   * with a function to call once, which exchanges it for the user's seat. Both reject with StatusError
   * 429.
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
    const arriving = isLong ? this.#arrivingLong : this.#arriving;
    const arrived = await seat(arriving, `address ${address}`, connection, downstream);
    let isAdmitted = false;
    return async (name, isUnknown = false) => {
      if (isAdmitted) return undefined;
      isAdmitted = true;
      arrived.leave();
      if (isLong) return this.#seatLong(name, isUnknown, downstream);
      const queue = isUnknown ? this.#unknown : this.#users;
      const taken = downstream.isBodyComplete
        ? await seat(queue, name, connection, downstream)
        : await this.#seatWithBody(queue, name, connection, downstream);
      return taken && ((newName) => taken.pass(this.#users, newName));
    };
  }

  /** Made-up credentials cost nothing, so an unauthenticated caller must not displace others. */
  #seatLong(name: string, isUnknown: boolean, downstream: HttpDownstream): (newName: string) => void {
    const holder = { displace: () => downstream.abort() };
    let release = this.#longRunning.acquire(name, holder, !isUnknown);
    if (release === undefined) throw tooMany();
    let isOver = false;
    downstream.onClose(() => {
      isOver = true;
      release?.();
    });
    return (newName) => {
      if (isOver) return;
      release?.();
      release = this.#longRunning.acquire(newName, holder) ?? this.#longRunning.acquire(name, holder, false);
    };
  }

  /**
   * A seat while the body arrives. Until the body begins, and if it becomes slow, the request waits
   * without a seat.
   */
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
  /** Moves the seat to another flow if that flow may have one more. */
  pass(queue: FairQueue, flow: string): void;
}

/** Acquires a seat until the exchange is over or `leave` is called. */
async function seat(queue: FairQueue, flow: string, lane: string, downstream: HttpDownstream): Promise<Seat> {
  const seated = queue.acquire(flow, lane, (leaves) => downstream.onClose(leaves));
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
  return WIRE_ERRORS["too-many-requests"].streaming({ seconds: RETRY_AFTER_SECONDS });
}
