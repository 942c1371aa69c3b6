// src/probes: the kubelet's probes: one attempt, its result, workers on a timer wheel, readiness of pods, health of nodes and gateways

import { availableParallelism } from "node:os";
import type { GatewayConfiguration } from "../config/configuration.ts";
import { type PodProbeParts, probePods } from "./pod-probes-component.ts";
import type { RunProbe } from "./run-probe.ts";
import { ProbeThreads } from "./threads/probe-threads.ts";
import { probeGateways, probeNodes, type UpstreamProbeParts } from "./upstream-probes-component.ts";
import type { ProbeState } from "./worker/probe-state.ts";
import { TimerWheel } from "./worker/timer-wheel.ts";

export type ProbeParts = PodProbeParts & UpstreamProbeParts;

export interface BuiltProbes {
  /** Of a streaming gateway, by name. */
  isGatewayHealthy(name: string): boolean;
  /** Of our nodes' pods, for `/debug/probes`. */
  listProbes(): readonly ProbeState[];
  stop(): void;
}

/** Everything that is probed: our nodes' pods, the nodes, the gateways. All share one timer. */
export async function buildProbes(
  configuration: GatewayConfiguration,
  parts: ProbeParts,
): Promise<BuiltProbes> {
  const wheel = new TimerWheel();
  const { threads } = configuration.podProbes;
  const probeThreads = new ProbeThreads({
    maxThreads: threads === "auto" ? availableParallelism() : threads,
    onProblem: (error) => parts.logger.error({ error }, "a probe thread has ended"),
  });
  const runProbe: RunProbe = (...probe) => probeThreads.run(...probe);
  const { nodes, gateways } = configuration.upstreamProbes;
  // The one that reads files comes first: the others start, and have to be stopped.
  const gatewayProbes = gateways && (await probeGateways(gateways, configuration, parts, wheel, runProbe));
  const stops: (() => void)[] = [];
  const hasNodes = configuration.podProbes.nodeNames.length > 0;
  const podProbes = hasNodes ? probePods(configuration, parts, wheel, runProbe) : undefined;
  stops.push(() => podProbes?.stop());
  // Probes dial by themselves, and would judge a node by a way that is not the one of its sessions.
  if (nodes !== undefined && parts.kubelet.connect === undefined)
    stops.push(probeNodes(nodes, parts, wheel, runProbe));
  return {
    listProbes: () => podProbes?.list() ?? [],
    isGatewayHealthy: (name) => gatewayProbes?.isHealthy(name) ?? true,
    stop: () => {
      gatewayProbes?.stop();
      for (const stop of stops) stop();
      probeThreads.stop();
    },
  };
}
