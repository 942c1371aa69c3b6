import { StatusError } from "@sluice/client/internal/api/status";
import type { Quotas } from "../../access/policy/component.ts";
import type { PlaceAnswer } from "./calls.ts";

interface Place {
  readonly worker: object;
  /** Undefined until the quotas have counted the session. */
  giveBack: (() => void) | undefined;
}

/** Counts the sessions of all workers, so that limits apply to the gateway rather than to each process. */
export class SessionLimiter {
  readonly #maxSessions: number;
  readonly #quotas: Quotas;
  readonly #places = new Map<number, Place>();
  #lastPlace = 0;

  constructor(maxSessions: number, quotas: Quotas) {
    this.#maxSessions = maxSessions;
    this.#quotas = quotas;
  }

  get taken(): number {
    return this.#places.size;
  }

  async acquire(worker: object, user: string, namespace: string): Promise<PlaceAnswer> {
    if (this.#places.size >= this.#maxSessions) {
      return { refusal: "too many streaming sessions, please try again later", code: 429 };
    }
    this.#lastPlace += 1;
    const place = this.#lastPlace;
    const taken: Place = { worker, giveBack: undefined };
    this.#places.set(place, taken);
    try {
      taken.giveBack = await this.#quotas.take(user, namespace);
      // The worker may have died in the meantime.
      if (!this.#places.has(place)) taken.giveBack();
      return { place };
    } catch (error) {
      this.#places.delete(place);
      if (!(error instanceof StatusError)) throw error;
      return { refusal: error.status.message ?? error.message, code: error.code === 503 ? 503 : 429 };
    }
  }

  release(place: number): void {
    this.#places.get(place)?.giveBack?.();
    this.#places.delete(place);
  }

  /** A worker has died: releases its places. */
  giveBackAllOf(worker: object): void {
    for (const [place, { worker: holder }] of this.#places) if (holder === worker) this.release(place);
  }
}
