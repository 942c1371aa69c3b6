// src/probes: the kubelet's probes: one attempt, its result, workers on a timer wheel, readiness of
// pods, health of nodes and gateways
import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { LeaderElectionSettings } from "../config/sections/leader-election.ts";
import type { BuiltCluster } from "../kubernetes/component.ts";
import { electReplica } from "../kubernetes/replica-election.ts";
import { electsProber } from "../kubernetes/required-rules.ts";
import { Started } from "../lifecycle/component.ts";
import type { Logger } from "../observability/logger.ts";
import { type BuiltPodProbes, type PodProbeParts, probePods } from "./pod-probes-component.ts";
import type { RunProbe } from "./run-probe.ts";
import { ProbeThreads } from "./threads/probe-threads.ts";
import { probeGateways, probeNodes, type UpstreamProbeParts } from "./upstream-probes-component.ts";
import type { ProbeState } from "./worker/probe-results.ts";
import { TimerWheel } from "./worker/timer-wheel.ts";

interface ElectedPodProbes {
  readonly settings: Omit<LeaderElectionSettings, "leaderElect">;
  readonly live: NonNullable<BuiltCluster["live"]>;
  readonly logger: Logger;
  /** This replica's id, the same for the worker that probes and its successor. */
  readonly replicaId?: string | undefined;
  /** Starts probing. Writes nothing once `mayWrite` is false. */
  readonly probe: (mayWrite: () => boolean) => BuiltPodProbes;
}

/**
 * Probes pods in one of several replicas, the one that holds a Lease. Pods keep the last prober's
 * results until the next prober has its own: no pod becomes unready because a replica died.
 */
function electPodProbes({ settings, live, logger, replicaId, probe }: ElectedPodProbes): BuiltPodProbes {
  const election = electReplica(live, settings, logger, TEXTS, replicaId);
  let probes: BuiltPodProbes | undefined;
  let isStopped = false;
  const end = (): void => {
    void probes?.stop();
    probes = undefined;
  };
  // Until the pods are listed, there is nothing to probe.
  void live.known.then(() => {
    if (isStopped) return;
    election.start({
      onLeading: () => {
        probes = probe(() => election.isLeading);
      },
      onLost: end,
    });
  });
  return {
    list: () => probes?.list() ?? [],
    stop: async () => {
      isStopped = true;
      end();
      await election.stop();
    },
  };
}

const TEXTS = {
  leading: "this gateway probes pods and writes their statuses",
  lost: "another gateway may probe pods and write their statuses",
} as const;

export interface ProbeParts extends PodProbeParts, UpstreamProbeParts {
  /** The live API, in which replicas elect the one that probes pods; absent without a live API. */
  readonly live?: BuiltCluster["live"];
  /** This replica's id, the same in all of its processes. */
  readonly replicaId?: string | undefined;
}

export interface BuiltProbes {
  /** Whether a streaming gateway with this name is healthy. */
  isGatewayHealthy(name: string): boolean;
  /** The probes of our nodes' pods, as `/debug/probes` shows them. */
  listProbes(): readonly ProbeState[];
  stop(): void | Promise<void>;
}

/** Starts all probes: of our nodes' pods, of nodes, and of gateways. All share one timer. */
export function buildProbes(configuration: GatewayConfiguration, parts: ProbeParts): Promise<BuiltProbes> {
  return Started.building((started) => buildIn(started, configuration, parts));
}

async function buildIn(
  started: Started,
  configuration: GatewayConfiguration,
  parts: ProbeParts,
): Promise<BuiltProbes> {
  const wheel = new TimerWheel();
  const { threads } = configuration.podProbes;
  const probeThreads = started.add(
    new ProbeThreads({
      maxThreads: threads === "auto" ? availableParallelism() : threads,
      onProblem: (error) => parts.logger.error({ error }, "a probe thread has ended"),
    }),
    (it) => it.stop(),
  );
  const runProbe: RunProbe = (...probe) => probeThreads.run(...probe);
  const { nodes, gateways } = configuration.upstreamProbes;
  const gatewayProbes =
    gateways &&
    started.add(await probeGateways(gateways, configuration, parts, wheel, runProbe), (it) => it.stop());
  const hasNodes = configuration.podProbes.nodeNames.length > 0;
  const podProbes = hasNodes
    ? started.add(probePodsOnce(configuration, parts, wheel, runProbe), (it) => it.stop())
    : undefined;
  // Probes dial directly, so they would judge a node by another route than the one that its
  // sessions take.
  if (nodes !== undefined && parts.kubelet.connect === undefined)
    started.add(probeNodes(nodes, parts, wheel, runProbe), (stop) => stop());
  return {
    listProbes: () => podProbes?.list() ?? [],
    isGatewayHealthy: (name) => gatewayProbes?.isHealthy(name) ?? true,
    stop: () => started.stop(),
  };
}

/** Probes pods in this gateway, or in one of its replicas at a time. */
function probePodsOnce(
  configuration: GatewayConfiguration,
  { live, replicaId, ...parts }: ProbeParts,
  wheel: TimerWheel,
  runProbe: RunProbe,
): BuiltPodProbes {
  const { leaderElection, nodeNames } = configuration.podProbes;
  if (live === undefined || !electsProber(configuration))
    return probePods(configuration, parts, wheel, runProbe);
  const { resourceName = leaseOfNodes(nodeNames) } = leaderElection;
  const { publishStatus, events, logger } = parts;
  return electPodProbes({
    settings: { ...leaderElection, resourceName },
    live,
    logger,
    replicaId,
    probe: (mayWrite) =>
      probePods(
        configuration,
        {
          ...parts,
          isSuccessor: true,
          publishStatus:
            publishStatus && (async (pod, status) => (mayWrite() ? publishStatus(pod, status) : undefined)),
          events: events && {
            record: async (...event) => (mayWrite() ? events.record(...event) : undefined),
          },
        },
        wheel,
        runProbe,
      ),
  });
}

function leaseOfNodes(nodeNames: readonly string[]): string {
  const digest = createHash("sha256").update(nodeNames.toSorted().join("\n")).digest("hex");
  return `sluice-probes-${digest.slice(0, 10)}`;
}
