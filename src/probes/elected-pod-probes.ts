import type { LeaderElectionSettings } from "../config/sections/leader-election.ts";
import type { BuiltCluster } from "../kubernetes/component.ts";
import { electReplica } from "../kubernetes/replica-election.ts";
import type { Logger } from "../observability/logger.ts";
import type { BuiltPodProbes } from "./pod-probes-component.ts";

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
 * Probes pods in one of several replicas, the one that owns a Lease. Pods keep the last prober's
 * results until the next one has its own: no pod becomes unready because a replica died.
 */
export function electPodProbes({
  settings,
  live,
  logger,
  replicaId,
  probe,
}: ElectedPodProbes): BuiltPodProbes {
  const election = electReplica(live, settings, logger, TEXTS, replicaId);
  let probes: BuiltPodProbes | undefined;
  let isStopped = false;
  const end = (): void => {
    void probes?.stop();
    probes = undefined;
  };
  // There is nothing to probe until the pods are listed.
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
