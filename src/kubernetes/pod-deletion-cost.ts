import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import type { Logger } from "../observability/logger.ts";
import type { ApiClient } from "./api-client.ts";
import { objectPath } from "./live-object.ts";

/**
 * KEP-2255: a scale-in removes the pods with the lowest cost first, if they are otherwise alike;
 * without the annotation the cost is 0.
 */
const POD_DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost";
/** Every write updates the pod, and all of the pod's watchers see it. */
const POD_DELETION_COST_INTERVAL_MS = 30_000;

/** The number of sessions; undefined while some of them cannot be counted. */
type CountSessions = () => number | undefined | Promise<number | undefined>;

interface PodDeletionCostOptions {
  readonly client: Pick<ApiClient, "json">;
  readonly namespace: string;
  readonly pod: string;
  readonly countSessions: CountSessions;
  readonly logger: Pick<Logger, "warn">;
  readonly intervalMs?: number;
}

/**
 * Annotates this process's pod with its session count, so that a scale-in removes idle replicas
 * first. Writes when the count passes a power of two, at most once an interval.
 */
export class PodDeletionCost {
  readonly #options: PodDeletionCostOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #stopping = new AbortController();
  #writing: Promise<void> = Promise.resolve();
  #isWriting = false;
  /** Unset at first: after a restart, the container's predecessor may have left an annotation. */
  #writtenMagnitude: number | undefined;
  #hasFailed = false;

  constructor(options: PodDeletionCostOptions) {
    this.#options = options;
    this.#timer = setInterval(
      () => this.#tick(),
      options.intervalMs ?? POD_DELETION_COST_INTERVAL_MS,
    ).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#writing;
  }

  #tick(): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#writing = this.#write().finally(() => {
      this.#isWriting = false;
    });
  }

  async #write(): Promise<void> {
    const { client, namespace, pod, countSessions, logger } = this.#options;
    try {
      const sessions = await countSessions();
      if (sessions === undefined) return;
      const magnitude = magnitudeOf(sessions);
      if (magnitude === this.#writtenMagnitude || this.#stopping.signal.aborted) return;
      await client.json({
        method: "PATCH",
        path: objectPath("Pod", namespace, pod),
        body: {
          contentType: "application/merge-patch+json",
          json: { metadata: { annotations: { [POD_DELETION_COST_ANNOTATION]: String(sessions) } } },
        },
        signal: this.#stopping.signal,
      });
      this.#writtenMagnitude = magnitude;
      this.#hasFailed = false;
    } catch (error) {
      if (this.#stopping.signal.aborted || this.#hasFailed) return;
      this.#hasFailed = true;
      logger.warn({ namespace, pod, error }, "the pod's deletion cost could not be written");
    }
  }
}

/** 0 for no sessions; n for 2^(n-1) sessions and more. */
function magnitudeOf(sessions: number): number {
  return sessions === 0 ? 0 : 1 + Math.floor(Math.log2(sessions));
}

/** Starts annotating this process's pod. Throws ConfigurationError if no variable names the pod. */
export function startPodDeletionCost(
  { client, namespace }: { readonly client: ApiClient; readonly namespace: string },
  countSessions: CountSessions,
  logger: Logger,
  { POD_NAME: pod = "" }: NodeJS.ProcessEnv = process.env,
): PodDeletionCost {
  if (pod !== "") return new PodDeletionCost({ client, namespace, pod, countSessions, logger });
  const message = "needs the environment variable POD_NAME: metadata.name by the downward API";
  throw new ConfigurationError([
    { source: "POD_NAME", line: 0, column: 0, path: "cluster.podDeletionCost", message },
  ]);
}
