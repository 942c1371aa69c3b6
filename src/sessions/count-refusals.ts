import { StatusError } from "@sluice/client/internal/api/status";
import { clientOfferOf } from "./client-offer.ts";
import type { SessionRunContext } from "./context.ts";
import type { IncomingStreaming } from "./incoming-request.ts";
import { wantsNewProtocol } from "./plan.ts";
import type { StreamingPath } from "./streaming-request.ts";

/** Runs `decide`; counts, logs and rethrows a refusal. */
export async function countingRefusals<Decided>(
  path: StreamingPath,
  incoming: IncomingStreaming,
  gateway: Pick<SessionRunContext, "logger" | "metrics">,
  decide: () => Promise<Decided>,
): Promise<Decided> {
  try {
    return await decide();
  } catch (error) {
    const code = error instanceof StatusError ? error.code : 500;
    const reason = error instanceof Error ? error.message : String(error);
    gateway.metrics.streamingRefused(path.subresource, undefined, code);
    if (wantsNewProtocol(path.subresource, clientOfferOf(incoming.headers))) {
      gateway.metrics.upgradeFailed(path.subresource);
    }
    const { remoteAddress, notes } = incoming;
    const { user, requestedBy } = notes ?? {};
    gateway.logger.info({ ...path, remoteAddress, user, requestedBy, code, reason }, "request refused");
    if (notes !== undefined) notes.isLogged = true;
    throw error;
  }
}
