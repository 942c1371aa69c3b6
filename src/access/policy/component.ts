import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { PolicyRule, SessionPolicy } from "../../config/sections/policy.ts";
import type { Component, Health } from "../../lifecycle/component.ts";
import type { Logger } from "../../observability/logger.ts";
import type { QuotaMetrics } from "../../observability/quota-metrics.ts";
import { QuotaLeases } from "./quota-leases.ts";
import { SessionQuotas } from "./session-quotas.ts";
import { SharedQuotas } from "./shared-quotas.ts";
import { valkeyConnector } from "./valkey-connection.ts";

/** Counts sessions, in this process or together with others. */
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
