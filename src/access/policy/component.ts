import type { PolicyRule, SessionPolicy } from "../../config/policy.ts";
import type { Component } from "../../observability/component.ts";

interface Counts {
  replaceLimits?(limits: SessionPolicy["limits"]): void;
}

export interface BuiltPolicy<Quotas extends Counts> extends Component {
  /** Its rules are replaced when the configuration is read again. */
  readonly inForce: { rules: readonly PolicyRule[]; readonly quotas: Quotas };
}

/** The rules for sessions and the counts of them. */
export function buildPolicy<Quotas extends Counts>(
  { rules, limits }: SessionPolicy,
  quotasOf: (limits: SessionPolicy["limits"]) => Quotas,
): BuiltPolicy<Quotas> {
  const inForce = { rules, quotas: quotasOf(limits) };
  return {
    inForce,
    reload: async ({ policy }) => {
      inForce.rules = policy.rules;
      inForce.quotas.replaceLimits?.(policy.limits);
    },
    stop: () => {},
  };
}
