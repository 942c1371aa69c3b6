import type { Cluster } from "../cluster/cluster.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { type DescribedNode, describeNode } from "./describe-nodes.ts";
import { KnownNodes } from "./known-nodes.ts";

/** Creates the node records with the configured bounds and times. */
export function buildKnownNodes(
  { kubelet, limits, timeouts }: Pick<GatewayConfiguration, "kubelet" | "limits" | "timeouts">,
  clock: { now(): number },
  metrics: Metrics,
  logger: Logger,
): KnownNodes {
  return new KnownNodes({
    streaming: kubelet.streaming,
    circuit: kubelet.circuitBreaker,
    maxNodes: limits.maxRememberedNodes,
    forgetAfterMs: timeouts.nodeMemoryMs,
    clock,
    metrics: metrics.nodes,
    logger,
  });
}

/** For `/debug/nodes`: every node of the cluster, or the named one. */
export function nodesForOperators(
  { kubelet }: Pick<GatewayConfiguration, "kubelet">,
  cluster: Pick<Cluster, "getNode" | "listNodes">,
  known: KnownNodes,
): (name?: string) => readonly DescribedNode[] {
  const locate = { preferredAddressTypes: kubelet.preferredAddressTypes, defaultKubeletPort: kubelet.port };
  return (name) => {
    const nodes =
      name === undefined ? cluster.listNodes() : [cluster.getNode(name)].filter((node) => node !== undefined);
    return nodes.map((node) => describeNode(node, { locate, streaming: kubelet.streaming, known }));
  };
}
