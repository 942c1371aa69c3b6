import type { Ingress, IngressAddress } from "../api/networking-objects.ts";
import type { LeaderElectionSettings } from "../config/sections/leader-election.ts";
import type { ApiClient } from "../kubernetes/api-client.ts";
import type { BuiltCluster } from "../kubernetes/component.ts";
import { objectPath } from "../kubernetes/live-object.ts";
import { electReplica } from "../kubernetes/replica-election.ts";
import { SharedEventRecorder } from "../kubernetes/shared-event-recorder.ts";
import type { Logger } from "../observability/logger.ts";
import type { IngressProblem } from "./route-problems.ts";

/** Writes Ingresses' statuses and Events. */
interface IngressWriter {
  /** False while another replica writes. */
  readonly mayWrite: () => boolean;
  readonly writeStatus: (ingress: Ingress, addresses: readonly IngressAddress[]) => Promise<void>;
  readonly tellProblem: (problem: IngressProblem) => void;
  /** Call this once. Runs the function whenever `mayWrite` becomes true. */
  start(onMayWrite: () => void): void;
  /** Call this after the last status write. */
  stop(): Promise<void>;
}

export function buildIngressWriter(
  settings: LeaderElectionSettings,
  { store, live }: Pick<BuiltCluster, "store" | "live">,
  logger: Logger,
): IngressWriter {
  if (live !== undefined) return writerTo(live, settings, logger);
  return {
    mayWrite: () => true,
    writeStatus: async (ingress, addresses) => {
      store.upsert({ ...ingress, status: { loadBalancer: { ingress: addresses } } });
    },
    tellProblem: () => {},
    start: (onMayWrite) => onMayWrite(),
    stop: () => Promise.resolve(),
  };
}

function writerTo(
  live: NonNullable<BuiltCluster["live"]>,
  settings: LeaderElectionSettings,
  logger: Logger,
): IngressWriter {
  const { client, known } = live;
  let isKnown = false;
  const election = settings.leaderElect ? electReplica(live, settings, logger, TEXTS) : undefined;
  const mayWrite = (): boolean => isKnown && (election?.isLeading ?? true);
  const recorder = new SharedEventRecorder({
    client,
    mayWrite,
    onFailure: (problem) => logger.warn({ problem }, "an Event could not be written"),
    onDropped: (reason) => logger.debug({ reason }, "too many Events, one was dropped"),
  });
  return {
    mayWrite,
    writeStatus: (ingress, addresses) => patchStatus(client, ingress, addresses),
    tellProblem: ({ origin, reason, message }) =>
      recorder.record({ involved: origin, type: "Warning", reason, message }),
    start: (onMayWrite) => {
      // Publishes and withdraws nothing before the first list of the cluster.
      void known.then(() => {
        isKnown = true;
        if (election === undefined) onMayWrite();
        else election.start({ onLeading: onMayWrite });
      });
    },
    stop: async () => {
      await recorder.stop();
      await election?.stop();
    },
  };
}

const TEXTS = {
  leading: "this gateway writes the statuses and Events of Ingresses",
  lost: "another gateway may write the statuses and Events of Ingresses",
} as const;

/** The time for one status write; a shutdown waits no longer than this. */
const STATUS_TIMEOUT_MS = 10_000;

async function patchStatus(
  client: ApiClient,
  { metadata: { namespace = "", name } }: Ingress,
  addresses: readonly IngressAddress[],
): Promise<void> {
  const json = { status: { loadBalancer: { ingress: addresses } } };
  const path = `${objectPath("Ingress", namespace, name)}/status`;
  await client.json({
    method: "PATCH",
    path,
    body: { contentType: "application/merge-patch+json", json },
    signal: AbortSignal.timeout(STATUS_TIMEOUT_MS),
  });
}
