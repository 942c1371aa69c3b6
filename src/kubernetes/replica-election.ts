import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { LeaderElectionSettings } from "../config/sections/leader-election.ts";
import type { Logger } from "../observability/logger.ts";
import type { ApiClient } from "./api-client.ts";
import { LeaderElection } from "./leader-election.ts";

/** Which of several replicas does something, as logged. */
export interface ReplicaElectionTexts {
  readonly leading: string;
  readonly lost: string;
}

export interface ReplicaElectionListener {
  onLeading(): void;
  onLost?(): void;
}

export interface ReplicaElection {
  /** To be asked before every write. */
  readonly isLeading: boolean;
  /** To be called once. */
  start(listener: ReplicaElectionListener): void;
  /** Gives the Lease up. To be called when nothing is written any more. */
  stop(): Promise<void>;
}

/** A leader election among replicas, which is logged. `replicaId`: the same for a process and its successor; absent: of this process alone. */
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
