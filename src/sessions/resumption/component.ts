import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { SessionClock } from "../../net/session-clock.ts";
import type { Logger } from "../../observability/logger.ts";
import type { Metrics } from "../../observability/metrics.ts";
import { ResumableSessions } from "./resumable-sessions.ts";
import { SessionOwner } from "./session-owner.ts";

/** Processes that are one gateway with this one: connections of one client reach several, each of which knows only its own sessions. */
export interface Siblings {
  /** How many, this one included. */
  readonly processes: number;
  /** Where they meet: a folder that only they may enter. */
  readonly socketFolder: string;
}

/** The sessions that may be resumed; undefined where the configuration says that there are none. */
export function buildResumption(
  { resumption, timeouts }: Pick<GatewayConfiguration, "resumption" | "timeouts">,
  { clock, metrics, logger }: { clock: SessionClock; metrics: Metrics; logger: Logger },
  siblings: Siblings | undefined,
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
    holder: siblings && new SessionOwner(siblings.socketFolder),
  });
}
