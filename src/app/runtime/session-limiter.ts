import { SessionQuotas } from "../../access/policy/session-quotas.ts";
import { StatusError } from "../../api/status.ts";
import type { SessionPolicy } from "../../config/policy.ts";
import type { PlaceAnswer } from "./calls.ts";

interface Place {
  readonly worker: object;
  readonly giveBack: () => void;
}

/** The places of all workers' sessions, so that bounds hold for the gateway and not for each of its processes. */
export class SessionLimiter {
  readonly #maxSessions: number;
  readonly #quotas: SessionQuotas;
  readonly #places = new Map<number, Place>();
  #lastPlace = 0;

  constructor(maxSessions: number, limits: SessionPolicy["limits"]) {
    this.#maxSessions = maxSessions;
    this.#quotas = new SessionQuotas(limits);
  }

  replaceLimits(limits: SessionPolicy["limits"]): void {
    this.#quotas.replaceLimits(limits);
  }

  get taken(): number {
    return this.#places.size;
  }

  acquire(worker: object, user: string, namespace: string): PlaceAnswer {
    if (this.#places.size >= this.#maxSessions) {
      return { refusal: "too many streaming sessions, please try again later" };
    }
    try {
      const giveBack = this.#quotas.take(user, namespace);
      this.#lastPlace += 1;
      this.#places.set(this.#lastPlace, { worker, giveBack });
      return { place: this.#lastPlace };
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      return { refusal: error.status.message ?? error.message };
    }
  }

  release(place: number): void {
    this.#places.get(place)?.giveBack();
    this.#places.delete(place);
  }

  /** A worker is gone, and its sessions with it. */
  giveBackAllOf(worker: object): void {
    for (const [place, { worker: holder }] of this.#places) if (holder === worker) this.release(place);
  }
}
