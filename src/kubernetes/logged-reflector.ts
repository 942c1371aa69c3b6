import type { KubernetesObject } from "../api/objects.ts";
import type { ClusterMetrics } from "../observability/cluster-metrics.ts";
import type { Logger } from "../observability/logger.ts";
import type { BadObjectError } from "./live-object.ts";
import { Reflector, type ReflectorOptions } from "./reflector.ts";

/** For tests: waits and watch times. */
export type ReflectorTuning = Partial<
  Pick<ReflectorOptions, "minWatchSeconds" | "watchEndGraceMs" | "watchSilenceMs" | "watchOpenMs">
> & {
  readonly backoff?: () => NonNullable<ReflectorOptions["backoff"]>;
};

interface LoggedReflectorOptions<T> extends Pick<ReflectorOptions<T>, "client" | "path" | "sink" | "read"> {
  /** For the log and metrics. */
  readonly kind: string;
  readonly fieldSelector?: string | undefined;
  readonly metrics: Pick<ClusterMetrics, "listed" | "event" | "watchEnded">;
  readonly logger: Pick<Logger, "info" | "warn">;
  readonly tuning?: ReflectorTuning | undefined;
  readonly onListed?: () => void;
  readonly onWatching?: () => void;
  readonly onBadObject?: (error: BadObjectError) => void;
  /** Receives the status of a refusal. */
  readonly onEnded?: (code: number | undefined) => void;
}

/** A reflector of one kind that logs and counts. */
export function loggedReflector<T = KubernetesObject>(options: LoggedReflectorOptions<T>): Reflector<T> {
  const { kind, client, path, sink, read, fieldSelector, metrics, logger, tuning = {} } = options;
  const { backoff, ...times } = tuning;
  // While the API is unreachable, every kind would log the same line at every try.
  let isSilenced = false;
  return new Reflector<T>({
    client,
    path,
    sink,
    read,
    ...times,
    ...(backoff && { backoff: backoff() }),
    ...(fieldSelector !== undefined && { fieldSelector }),
    events: {
      listed: (objects) => {
        metrics.listed(kind);
        logger.info({ kind, objects }, "listed from the Kubernetes API");
        options.onListed?.();
      },
      watching: () => {
        if (isSilenced) logger.info({ kind }, "the Kubernetes API is watched again");
        isSilenced = false;
        options.onWatching?.();
      },
      event: () => metrics.event(kind),
      badObject: (error) => options.onBadObject?.(error),
      ended: (how, problem, waitMs, code) => {
        metrics.watchEnded(kind, how);
        options.onEnded?.(code);
        if (how === "ended" || isSilenced) return;
        isSilenced = true;
        logger.warn({ kind, how, problem, waitMs: Math.round(waitMs) }, "the Kubernetes API is not watched");
      },
    },
  });
}
