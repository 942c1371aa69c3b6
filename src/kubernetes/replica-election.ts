import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { LeaderElectionSettings } from "../config/sections/leader-election.ts";
import type { Logger } from "../observability/logger.ts";
import type { ApiClient } from "./api-client.ts";
import { LeaderElection } from "./leader-election.ts";

/** Log messages about which replica does the work. */
interface ReplicaElectionTexts {
  readonly leading: string;
  readonly lost: string;
}

interface ReplicaElectionListener {
  onLeading(): void;
  onLost?(): void;
}

interface ReplicaElection {
  /** Read this before every write. */
  readonly isLeading: boolean;
  /** Call it once. */
  start(listener: ReplicaElectionListener): void;
  /** Releases the Lease. Call it after the last write. */
  stop(): Promise<void>;
}

/**
 * Runs a logged leader election among replicas. `replicaId` is the same for a process and its
 * successor; if it is absent, this process makes its own.
 */
export function electReplica(
  { client, namespace: ownNamespace }: { readonly client: ApiClient; readonly namespace: string },
  settings: Omit<LeaderElectionSettings, "leaderElect">,
  logger: Logger,
  texts: ReplicaElectionTexts,
  replicaId: string = randomUUID(),
): ReplicaElection {
  const { resourceName: name, resourceNamespace: namespace = ownNamespace } = settings;
  const lease = `${namespace}/${name}`;
  let listener: ReplicaElectionListener | undefined;
  const election = new LeaderElection({
    ...settings,
    client,
    namespace,
    name,
    identity: `${hostname()}_${replicaId}`,
    onLeading: () => {
      logger.info({ lease }, texts.leading);
      listener?.onLeading();
    },
    onLost: () => {
      logger.warn({ lease }, texts.lost);
      listener?.onLost?.();
    },
    onFailure: (problem) => logger.warn({ lease, problem }, "the Lease could not be read or written"),
  });
  return {
    get isLeading() {
      return election.isLeading;
    },
    start: (given) => {
      listener = given;
      election.start();
    },
    stop: () => election.stop(),
  };
}
