import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { SessionPolicy } from "../../config/sections/policy.ts";
import { type QuotaLease, type QuotaLeases, QuotaStoreAwayError } from "./quota-leases.ts";
import type { QuotaAnswer } from "./quota-script.ts";
import { namespaceIsFull, SessionQuotas, userIsFull } from "./session-quotas.ts";

/** The decision about a session; the last two apply while the store is unavailable. */
type QuotaDecision = "granted" | "refused" | "allowed" | "denied";

interface SharedQuotasOptions {
  readonly onFailure: "allow" | "deny";
  readonly onDecision: (decision: QuotaDecision) => void;
}

/**
 * Counts all replicas' sessions in the quota store; while that is unavailable, only this replica's.
 */
export class SharedQuotas {
  #limits: SessionPolicy["limits"];
  readonly #own: SessionQuotas;
  readonly #leases: QuotaLeases;
  readonly #options: SharedQuotasOptions;

  constructor(limits: SessionPolicy["limits"], leases: QuotaLeases, options: SharedQuotasOptions) {
    this.#limits = limits;
    this.#own = new SessionQuotas(limits);
    this.#leases = leases;
    this.#options = options;
  }

  get limits(): SessionPolicy["limits"] {
    return this.#limits;
  }

  /** Sessions beyond a lowered limit continue. */
  replaceLimits(limits: SessionPolicy["limits"]): void {
    this.#limits = limits;
    this.#own.replaceLimits(limits);
  }

  /**
   * Rejects with StatusError 429, or with 503 if the store is unavailable and the configuration
   * denies then. The result releases the place, once.
   */
  async take(user: string, namespace: string): Promise<() => void> {
    const lease = this.#leases.newLease(user, namespace);
    const giveBack = await this.#place(lease);
    // A lease that the store has not granted is written by the next renewal.
    this.#leases.hold(lease);
    return () => {
      giveBack();
      this.#leases.release(lease);
    };
  }

  async #place(lease: QuotaLease): Promise<() => void> {
    const { user, namespace } = lease;
    const { onDecision } = this.#options;
    const answer = this.#isBounded ? await this.#ask(lease) : "granted";
    if (answer === undefined) return this.#withoutStore(user, namespace);
    onDecision(answer === "granted" ? "granted" : "refused");
    if (answer === "user") throw userIsFull(user, this.#limits);
    if (answer === "namespace") throw namespaceIsFull(namespace, this.#limits);
    return this.#own.count(user, namespace);
  }

  get #isBounded(): boolean {
    return (this.#limits.maxSessionsPerUser ?? this.#limits.maxSessionsPerNamespace) !== undefined;
  }

  /** Undefined if the store is unavailable. */
  async #ask(lease: QuotaLease): Promise<QuotaAnswer | undefined> {
    try {
      return await this.#leases.take(lease);
    } catch (error) {
      if (error instanceof QuotaStoreAwayError) return undefined;
      throw error;
    }
  }

  #withoutStore(user: string, namespace: string): () => void {
    const { onFailure, onDecision } = this.#options;
    if (onFailure === "deny") {
      onDecision("denied");
      throw WIRE_ERRORS["quota-uncounted"].streaming();
    }
    const giveBack = this.#own.take(user, namespace);
    onDecision("allowed");
    return giveBack;
  }
}
