import { namespaceStrategy, nodeStrategy } from "./core-strategies.ts";
import { ingressClassStrategy } from "./ingress-class-strategy.ts";
import { ingressStrategy } from "./ingress-strategy.ts";
import { podStrategy } from "./pod-strategy.ts";
import {
  clusterRoleBindingStrategy,
  clusterRoleStrategy,
  roleBindingStrategy,
  roleStrategy,
} from "./rbac-strategies.ts";
import {
  endpointSliceStrategy,
  leaseStrategy,
  secretStrategy,
  serviceStrategy,
} from "./service-strategies.ts";
import type { Strategy } from "./strategy.ts";
import { workloadStrategies } from "./workload-strategies.ts";

/** Every known kind. */
export const strategies: readonly Strategy[] = [
  podStrategy,
  nodeStrategy,
  namespaceStrategy,
  ingressStrategy,
  ingressClassStrategy,
  roleStrategy,
  clusterRoleStrategy,
  roleBindingStrategy,
  clusterRoleBindingStrategy,
  serviceStrategy,
  endpointSliceStrategy,
  secretStrategy,
  leaseStrategy,
  ...workloadStrategies,
];

const byKind: ReadonlyMap<string, Strategy> = new Map(
  strategies.map((strategy) => [strategy.kind, strategy]),
);

export function strategyOf(kind: string): Strategy | undefined {
  return byKind.get(kind);
}
