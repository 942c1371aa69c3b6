import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { SessionClock } from "../../net/session-clock.ts";
import type { Logger } from "../../observability/logger.ts";
import type { Metrics } from "../../observability/metrics.ts";
import type { ReplicaName } from "./replica-name.ts";
import { ResumableSessions } from "./resumable-sessions.ts";
import { SessionOwner } from "./session-owner.ts";

/** Processes that are one gateway with this one: connections of one client reach several, each of which knows only its own sessions. */
export interface Siblings {
  /** How many, this one included. */
  readonly processes: number;
  /** Where they meet: a folder that only they may enter. */
  readonly socketFolder: string;
}

/** Other processes that may own a session that is resumed here. */
export interface OtherOwners {
  /** Absent: this process is the only one of its machine. */
  readonly siblings?: Siblings | undefined;
  /** Absent: this machine is the only one. */
  readonly replica?: ReplicaName | undefined;
}

/** The sessions that may be resumed; undefined where the configuration says that there are none. */
export function buildResumption(
  { resumption, timeouts }: Pick<GatewayConfiguration, "resumption" | "timeouts">,
  { clock, metrics, logger }: { clock: SessionClock; metrics: Metrics; logger: Logger },
  { siblings, replica }: OtherOwners,
): ResumableSessions | undefined {
  if (!resumption.enabled) return undefined;
  const count = siblings?.processes ?? 1;
  return new ResumableSessions({
    // Each process has its share, so that all together hold no more than one alone would.
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
