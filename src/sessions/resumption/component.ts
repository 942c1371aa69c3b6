import type { Server } from "node:http";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { SessionClock } from "../../net/session-clock.ts";
import type { Logger } from "../../observability/logger.ts";
import type { Metrics } from "../../observability/metrics.ts";
import type { GatewayContext } from "../context.ts";
import type { Responder } from "../responder.ts";
import { createHolderServer } from "./owner-server.ts";
import { ResumableSessions } from "./resumable-sessions.ts";
import { SessionOwner } from "./session-owner.ts";

/** The sessions that may be resumed; undefined where the configuration says that there are none. */
export function buildResumption(
  { resumption, timeouts }: GatewayConfiguration,
  { clock, metrics, logger }: { clock: SessionClock; metrics: Metrics; logger: Logger },
  { siblings }: Runtime,
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

/** Listens for resumptions that other processes of this gateway got; undefined where there are none. */
export async function startHolderServer(
  gateway: GatewayContext,
  responder: Responder,
): Promise<Server | undefined> {
  const holder = gateway.resumable?.holder;
  if (holder === undefined) return undefined;
  const server = createHolderServer(gateway, responder);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(holder.socketPath, resolve);
  });
  return server;
}
