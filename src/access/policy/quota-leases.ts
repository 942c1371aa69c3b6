import { randomBytes } from "node:crypto";
import { Backoff } from "../../net/backoff.ts";
import {
  type ConnectQuotaStore,
  type QuotaAnswer,
  type QuotaBounds,
  type QuotaChange,
  type QuotaConnection,
  quotaCall,
  readQuotaAnswers,
} from "./valkey-connection.ts";

/**
 * Changes in one call of the quota store, which takes less than a millisecond. Past it they go with
 * the next call.
 */
const MAX_CHANGES_OF_CALL = 100;
/** Renewals in one lease time; two of them may fail. */
const RENEWALS = 3;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
const MAX_PROBLEM_CHARACTERS = 200;

interface QuotaLeasesOptions {
  readonly connect: ConnectQuotaStore;
  readonly keyPrefix: string;
  readonly leaseMs: number;
  readonly bounds: () => QuotaBounds;
  /** The store became available or unavailable; the problem contains no key and no password. */
  readonly onChange: (problem: string | undefined) => void;
  readonly onCall?: (seconds: number) => void;
}

/** A session's lease. */
export interface QuotaLease {
  readonly member: string;
  readonly user: string;
  readonly namespace: string;
}

/** The quota store is unavailable; as far as this replica knows, no lease was taken. */
export class QuotaStoreAwayError extends Error {}

interface Waiting {
  readonly resolve: (answer: QuotaAnswer) => void;
  readonly reject: (error: Error) => void;
}

/**
 * This replica's leases in the quota store, one call at a time; changes that arrive meanwhile join
 * the next call. Nothing waits while the store is unavailable; held leases are written first
 * afterwards.
 */
export class QuotaLeases {
  readonly #options: QuotaLeasesOptions;
  readonly #backoff = new Backoff({ firstMs: FIRST_RETRY_MS, maxMs: MAX_RETRY_MS });
  readonly #held = new Map<string, QuotaLease>();
  /** Takes and drops in order, at most one of each for a session. */
  #queue: { readonly change: QuotaChange; readonly waiting?: Waiting }[] = [];
  #renewals: Iterator<QuotaLease> | undefined;
  #connection: QuotaConnection | undefined;
  #calling: Promise<void> | undefined;
  #problem: string | undefined = "not yet connected";
  #reported: string | undefined;
  #retry: NodeJS.Timeout | undefined;
  readonly #renew: NodeJS.Timeout;
  #isStopped = false;
  readonly #replica = randomBytes(9).toString("base64url");
  #last = 0;

  constructor(options: QuotaLeasesOptions) {
    this.#options = options;
    this.#renew = setInterval(() => void this.#startRenewal(), options.leaseMs / RENEWALS).unref();
  }

  /** Why the store is unavailable; undefined while it works. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Changes that wait for the store. */
  get waiting(): number {
    return this.#queue.length;
  }

  newLease(user: string, namespace: string): QuotaLease {
    this.#last += 1;
    return { member: `${this.#replica}.${this.#last.toString(36)}`, user, namespace };
  }

  /** Rejects with QuotaStoreAwayError. */
  async take(lease: QuotaLease): Promise<QuotaAnswer> {
    if (this.#problem !== undefined) throw new QuotaStoreAwayError(this.#problem);
    return new Promise((resolve, reject) => {
      this.#queue.push({ change: { action: "take", ...lease }, waiting: { resolve, reject } });
      void this.#call();
    });
  }

  /**
   * Renews the lease until its release. The renewal writes it to the store, even beyond the limit.
   */
  hold(lease: QuotaLease): void {
    this.#held.set(lease.member, lease);
  }

  /** While the store is unavailable, the lease simply expires. */
  release(lease: QuotaLease): void {
    if (!this.#held.delete(lease.member) || this.#problem !== undefined) return;
    this.#queue.push({ change: { action: "drop", ...lease } });
    void this.#call();
  }

  /** Resolves after the first attempt, successful or not; attempts continue. */
  async connect(): Promise<void> {
    this.#retry = undefined;
    let opened: QuotaConnection | undefined;
    try {
      opened = await this.#options.connect(() => {
        if (opened !== undefined && this.#connection === opened) this.#lost("the connection was closed");
      });
    } catch (error) {
      this.#lost(textOf(error));
      return;
    }
    if (this.#isStopped) {
      opened.close();
      return;
    }
    this.#connection = opened;
    await this.#startRenewal();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#renew);
    clearTimeout(this.#retry);
    this.#connection?.close();
    this.#connection = undefined;
    this.#fail("the gateway is shutting down");
  }

  #startRenewal(): Promise<void> {
    this.#renewals ??= this.#held.values();
    return this.#call();
  }

  async #call(): Promise<void> {
    if (this.#hasWork) this.#calling ??= this.#callAll();
    await this.#calling;
  }

  get #hasWork(): boolean {
    return this.#connection !== undefined && (this.#queue.length > 0 || this.#renewals !== undefined);
  }

  async #callAll(): Promise<void> {
    try {
      while (this.#connection !== undefined && this.#hasWork) await this.#callOnce(this.#connection);
    } finally {
      this.#calling = undefined;
    }
  }

  async #callOnce(connection: QuotaConnection): Promise<void> {
    const { keyPrefix, leaseMs, bounds, onCall } = this.#options;
    const queued = this.#queue.splice(0, MAX_CHANGES_OF_CALL);
    const renewed = this.#nextRenewals(MAX_CHANGES_OF_CALL - queued.length);
    const changes = [...queued.map(({ change }) => change), ...renewed];
    const { keys, values } = quotaCall(changes, keyPrefix, leaseMs, bounds());
    const startedMs = performance.now();
    try {
      const answers = readQuotaAnswers(await connection.run(keys, values), changes.length);
      for (const [index, { waiting }] of queued.entries()) waiting?.resolve(answers[index] as QuotaAnswer);
      if (this.#renewals === undefined) this.#serves();
    } catch (error) {
      const problem = textOf(error);
      for (const { waiting } of queued) waiting?.reject(new QuotaStoreAwayError(problem));
      if (this.#connection === connection) this.#lost(problem);
    }
    onCall?.((performance.now() - startedMs) / 1_000);
  }

  /** Empty at the end of a renewal: the call then shows that the store answers. */
  #nextRenewals(count: number): QuotaChange[] {
    const changes: QuotaChange[] = [];
    while (changes.length < count && this.#renewals !== undefined) {
      const { done, value } = this.#renewals.next();
      if (done === true) this.#renewals = undefined;
      else changes.push({ action: "keep", ...value });
    }
    return changes;
  }

  #serves(): void {
    this.#backoff.reset();
    this.#problem = undefined;
    this.#report();
  }

  #lost(problem: string): void {
    this.#connection?.close();
    this.#connection = undefined;
    if (this.#isStopped) return;
    this.#fail(problem);
    this.#report();
    this.#retry ??= setTimeout(() => void this.connect(), this.#backoff.next()).unref();
  }

  #fail(problem: string): void {
    this.#problem = problem;
    this.#renewals = undefined;
    for (const { waiting } of this.#queue.splice(0)) waiting?.reject(new QuotaStoreAwayError(problem));
  }

  /** Consecutive failed attempts count as one change. */
  #report(): void {
    const isAway = this.#problem !== undefined;
    if (isAway === (this.#reported !== undefined)) return;
    this.#reported = this.#problem;
    this.#options.onChange(this.#problem);
  }
}

/** Removes the arguments that an unknown command's error quotes. */
function textOf(error: unknown): string {
  const [text = ""] = error instanceof Error ? error.message.split(", with args") : [];
  return text.slice(0, MAX_PROBLEM_CHARACTERS);
}
