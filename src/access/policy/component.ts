import type { StatusError } from "@sluice/client/internal/api/status";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { PolicyRule } from "../../config/sections/policy.ts";
import type { Component, Health } from "../../lifecycle/component.ts";
import type { Logger } from "../../observability/logger.ts";
import type { QuotaMetrics } from "../../observability/operations-metrics.ts";
import { type QuotaLease, QuotaLeases, QuotaStoreAwayError } from "./quota-leases.ts";
import { type QuotaAnswer, valkeyConnector } from "./valkey-connection.ts";

type SessionPolicy = GatewayConfiguration["policy"];

const RETRY_AFTER_SECONDS = 10;

/** Counts each user's and namespace's sessions, including those being set up. */
export class SessionQuotas {
  #limits: SessionPolicy["limits"];
  readonly #ofUser = new Map<string, number>();
  readonly #ofNamespace = new Map<string, number>();

  constructor(limits: SessionPolicy["limits"]) {
    this.#limits = limits;
  }

  /** Sessions beyond a lowered limit continue. */
  replaceLimits(limits: SessionPolicy["limits"]): void {
    this.#limits = limits;
  }

  /**
   * Reserves a place in both counts, or throws StatusError 429 and reserves none. The result
   * releases both, once.
   */
  take(user: string, namespace: string): () => void {
    const { maxSessionsPerUser = Infinity, maxSessionsPerNamespace = Infinity } = this.#limits;
    if ((this.#ofUser.get(user) ?? 0) >= maxSessionsPerUser) throw userIsFull(user, this.#limits);
    if ((this.#ofNamespace.get(namespace) ?? 0) >= maxSessionsPerNamespace)
      throw namespaceIsFull(namespace, this.#limits);
    return this.count(user, namespace);
  }

  /** Counts a session regardless of the limits. */
  count(user: string, namespace: string): () => void {
    add(this.#ofUser, user, 1);
    add(this.#ofNamespace, namespace, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      add(this.#ofUser, user, -1);
      add(this.#ofNamespace, namespace, -1);
    };
  }

  /** The counted users and namespaces; those without sessions are removed. */
  get size(): number {
    return this.#ofUser.size + this.#ofNamespace.size;
  }
}

function userIsFull(user: string, { maxSessionsPerUser }: SessionPolicy["limits"]): StatusError {
  return isFull(`user ${JSON.stringify(user)}`, maxSessionsPerUser);
}

function namespaceIsFull(
  namespace: string,
  { maxSessionsPerNamespace }: SessionPolicy["limits"],
): StatusError {
  return isFull(`namespace ${JSON.stringify(namespace)}`, maxSessionsPerNamespace);
}

function isFull(subject: string, limit: number | undefined): StatusError {
  return WIRE_ERRORS["quota-full"].streaming({ subject, limit, seconds: RETRY_AFTER_SECONDS });
}

function add(counts: Map<string, number>, key: string, difference: number): void {
  const count = (counts.get(key) ?? 0) + difference;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

/** The decision about a session. The last two apply while the store is unavailable. */
type QuotaDecision = "granted" | "refused" | "allowed" | "denied";

interface SharedQuotasOptions {
  readonly onFailure: "allow" | "deny";
  readonly onDecision: (decision: QuotaDecision) => void;
}

/**
 * Counts all replicas' sessions in the quota store. While the store is unavailable, counts only
 * this replica's.
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
    // The next renewal writes a lease that the store has not granted.
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

/** Counts sessions, in this process or together with other processes. */
export interface Quotas {
  /**
   * Reserves a session, or fails with StatusError 429, or 503 if the count is unavailable. The
   * result releases it.
   */
  take(user: string, namespace: string): (() => void) | Promise<() => void>;
  /** Absent if another process counts the sessions. */
  replaceLimits?(limits: SessionPolicy["limits"]): void;
}

interface BuiltPolicy extends Component {
  /** A configuration reload replaces these rules. */
  readonly inForce: { rules: readonly PolicyRule[]; readonly quotas: Quotas };
}

/** The rules for sessions and their quotas. */
export function buildPolicy({ rules }: SessionPolicy, quotas: Quotas): BuiltPolicy {
  const inForce = { rules, quotas };
  return {
    inForce,
    reload: async ({ policy }) => {
      inForce.rules = policy.rules;
      quotas.replaceLimits?.(policy.limits);
    },
    stop: () => {},
  };
}

interface BuiltQuotas extends Component {
  readonly quotas: Quotas;
}

/**
 * Counts sessions in this process, or over all replicas in the quota store. Throws
 * NotInstalledError.
 */
export async function buildQuotas(
  { policy, quotaStore }: Pick<GatewayConfiguration, "policy" | "quotaStore">,
  allMetrics: { addQuotas(isUp: () => boolean): QuotaMetrics },
  logger: Logger,
): Promise<BuiltQuotas> {
  if (quotaStore === undefined) return { quotas: new SessionQuotas(policy.limits), stop: () => {} };
  const { onFailure, keyPrefix, leaseMs } = quotaStore;
  const leases: QuotaLeases = new QuotaLeases({
    connect: await valkeyConnector(quotaStore),
    keyPrefix,
    leaseMs,
    bounds: () => quotas.limits,
    onChange: (problem) => {
      if (problem === undefined) logger.info({}, "the quota store is back: sessions of all replicas count");
      else logger.warn({ problem, onFailure }, AWAY[onFailure]);
    },
    onCall: (seconds) => metrics.called(seconds),
  });
  const metrics = allMetrics.addQuotas(() => leases.problem === undefined);
  const quotas = new SharedQuotas(policy.limits, leases, {
    onFailure,
    onDecision: (decision) => metrics.decided(decision),
  });
  // Connects first, so that all replicas count the first sessions; starts without the store, too.
  await leases.connect();
  // Not a failure: an outage of the store would otherwise take all replicas out of service.
  const health = (): Health =>
    leases.problem === undefined ? undefined : { note: `${AWAY[onFailure]}: ${leases.problem}` };
  return { quotas, health, stop: () => leases.stop() };
}

const AWAY = {
  allow: "the quota store is away: this replica counts its own sessions",
  deny: "the quota store is away: new sessions are refused",
} as const;
