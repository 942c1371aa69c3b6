import { CLAIMED_KUBERNETES_MINOR } from "@sluice/client/internal/config/version";
import { addressOfUrl } from "@sluice/client/internal/net/dial";
import type { ProbeHandler } from "../api/probe-objects.ts";
import type { ClusterStore } from "../cluster/cluster-store.ts";
import { nodeEndpointOf } from "../cluster/locate.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { KnownNodes } from "../nodes/known-nodes.ts";
import type { Logger } from "../observability/logger.ts";
import type { KubeletOptions } from "../sessions/context.ts";
import { errored } from "./probe-result.ts";
import type { ProbeUpdate } from "./probe-update.ts";
import type { RunProbe } from "./run-probe.ts";
import { UpstreamProbes, type UpstreamTarget } from "./upstream/upstream-probes.ts";
import type { TimerWheel } from "./worker/timer-wheel.ts";

type UpstreamProbe = NonNullable<GatewayConfiguration["upstreamProbes"]["nodes"]>;

export interface UpstreamProbeParts {
  readonly store: ClusterStore;
  readonly nodes: Pick<KnownNodes, "reportProbe">;
  readonly kubelet: KubeletOptions;
  readonly logger: Logger;
  /** Another process's earlier results for nodes and gateways; absent: all count as healthy. */
  readonly wasHealthy?: ((kind: "node" | "gateway", name: string) => boolean) | undefined;
  /** Sends results for nodes and gateways to other processes. */
  readonly share?: ((findings: readonly ProbeUpdate[]) => void) | undefined;
}

/** Probes every node of the cluster, including new ones. Verdicts go to the circuit breaker. */
export function probeNodes(
  probe: UpstreamProbe,
  { store, nodes, kubelet, logger, wasHealthy, share }: UpstreamProbeParts,
  wheel: TimerWheel,
  runProbe: RunProbe,
): () => void {
  const probes = new UpstreamProbes({
    timing: timingOf(probe),
    wheel,
    wasHealthy: wasHealthy && ((name) => wasHealthy("node", name)),
    report: (name, isHealthy, reason) => {
      nodes.reportProbe(name, isHealthy, reason);
      share?.([{ kind: "node", name, isHealthy, reason }]);
      logger.warn(
        { node: name, isHealthy, reason },
        isHealthy ? "a node is healthy again" : "a node is unhealthy",
      );
    },
  });
  const refresh = (): void => {
    probes.setTargets(
      store.listNodes().map(
        (node): UpstreamTarget => ({
          name: node.metadata.name,
          attempt: async (timeoutMs, signal) => {
            try {
              const endpoint = await kubelet.endpointOf(nodeEndpointOf(node, kubelet));
              return await run(runProbe, probe, endpoint, timeoutMs, signal);
            } catch (error) {
              // A name or address that must not be dialled says nothing about its node.
              return errored(error instanceof Error ? error.message : String(error));
            }
          },
        }),
      ),
    );
  };
  const unsubscribe = store.subscribe(({ type, object }) => {
    if (object.kind !== "Node") return;
    refresh();
    // A deleted node is no longer probed, and counts as healthy if it returns.
    if (type === "DELETED")
      share?.([{ kind: "node", name: object.metadata.name, isHealthy: true, reason: "" }]);
  });
  refresh();
  return () => {
    unsubscribe();
    probes.stop();
  };
}

/** Probes the upstreams of streaming gateways. */
export async function probeGateways(
  probe: UpstreamProbe,
  { listeners }: GatewayConfiguration,
  { logger, wasHealthy, share }: UpstreamProbeParts,
  wheel: TimerWheel,
  runProbe: RunProbe,
): Promise<UpstreamProbes> {
  const targets: UpstreamTarget[] = [];
  for (const { name, upstream } of listeners.ingress?.streamingGateways ?? []) {
    if (upstream === undefined) continue;
    const endpoint = addressOfUrl(upstream.url);
    targets.push({ name, attempt: (timeoutMs, signal) => run(runProbe, probe, endpoint, timeoutMs, signal) });
  }
  const probes = new UpstreamProbes({
    timing: timingOf(probe),
    wheel,
    wasHealthy: wasHealthy && ((name) => wasHealthy("gateway", name)),
    report: (gateway, isHealthy, reason) => {
      share?.([{ kind: "gateway", name: gateway, isHealthy, reason }]);
      logger.warn(
        { gateway, isHealthy, reason },
        isHealthy ? "a gateway is healthy again" : "a gateway is unhealthy",
      );
    },
  });
  probes.setTargets(targets);
  return probes;
}

function run(
  runProbe: RunProbe,
  probe: UpstreamProbe,
  { host, port }: { readonly host: string; readonly port: number },
  timeoutMs: number,
  signal: AbortSignal,
) {
  return runProbe(
    handlerOf(probe, port),
    { host, containerPorts: [] },
    {
      timeoutMs,
      signal,
      userAgentVersion: CLAIMED_KUBERNETES_MINOR,
      // The configuration file requests these probes explicitly.
      gates: { H2CContainerProbe: true, GRPCContainerProbeTLS: true },
    },
  );
}

function handlerOf({ handler }: UpstreamProbe, usualPort: number): ProbeHandler {
  const port = handler.port ?? usualPort;
  switch (handler.type) {
    case "tcpSocket":
      return { tcpSocket: { port } };
    case "grpc":
      return { grpc: { port, service: handler.service, mode: handler.mode } };
    case "httpGet": {
      const { path, scheme, protocol } = handler;
      return { httpGet: { port, path, scheme, protocol } };
    }
  }
}

function timingOf({ handler: _, ...timing }: UpstreamProbe) {
  return { initialDelaySeconds: 0, ...timing };
}
