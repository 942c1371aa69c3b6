import type { SessionClock } from "@sluice/client/internal/net/session-clock";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { Logger } from "../../observability/logger.ts";
import type { Metrics } from "../../observability/metrics.ts";
import { ResumableSessions } from "./resumable-sessions.ts";
import { type ReplicaName, SessionOwner } from "./session-owner.ts";

/**
 * The other processes of this gateway on this machine. A client's connections may reach any of them,
 * and each knows only its own sessions.
 */
export interface Siblings {
  /** The number of processes, including this one. */
  readonly processes: number;
  /** The folder of their sockets. Only the gateway's user may enter it. */
  readonly socketFolder: string;
}

/** Other processes that may own a session that a client resumes here. */
interface OtherOwners {
  /** Absent: this process is the only one on its machine. */
  readonly siblings?: Siblings | undefined;
  /** Absent: this machine is the only one. */
  readonly replica?: ReplicaName | undefined;
}

/** The registry of resumable sessions; undefined if the configuration turns resumption off. */
export function buildResumption(
  { resumption, timeouts }: Pick<GatewayConfiguration, "resumption" | "timeouts">,
  { clock, metrics, logger }: { clock: SessionClock; metrics: Metrics; logger: Logger },
  { siblings, replica }: OtherOwners,
): ResumableSessions | undefined {
  if (!resumption.enabled) return undefined;
  const count = siblings?.processes ?? 1;
  return new ResumableSessions({
    // Each process gets a share, so that together they stay within the configured limits.
    settings: {
      ...resumption,
      maxSessions: Math.ceil(resumption.maxSessions / count),
      maxTotalBytes: Math.floor(resumption.maxTotalBytes / count),
    },
    clock,
    lingerTimes: timeouts,
    metrics: metrics.resumption,
    logger,
    owner:
      siblings === undefined && replica === undefined
        ? undefined
        : new SessionOwner({ socketFolder: siblings?.socketFolder, replica }),
  });
}
