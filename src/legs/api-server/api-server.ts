import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { refuseUpgrade, writeStatus } from "../../listeners/answer.ts";
import { completeWithSocket } from "../../listeners/audit-request.ts";
import type { ServingContext } from "../../listeners/edge-rules.ts";
import { isAttachPath, isOutputPath } from "../../listeners/exchange-times.ts";
import { createListener, type Listener, type ListenerOptions } from "../../listeners/listener.ts";
import { countingRefusals } from "../../sessions/count-refusals.ts";
import type { IncomingStreaming, PendingClient } from "../../sessions/incoming-request.ts";
import { runResumable } from "../../sessions/resumption/run-resumable.ts";
import { matchStreamingPath } from "../../sessions/streaming-request.ts";
import { admitStreaming } from "./admit-streaming.ts";
import { type AdmissionRoute, apiServerLeg } from "./api-server-leg.ts";

/** Handles everything but streaming subresources: answers from manifests, or forwards to an API server. */
export interface OtherRequests {
  handleRequest(incoming: IncomingStreaming, downstream: HttpDownstream): Promise<void>;
  handleUpgrade(incoming: IncomingStreaming, client: PendingClient): Promise<void>;
}

/** Creates the API-server leg's listener, not yet listening. */
export function createApiServer(
  gateway: ServingContext,
  other: OtherRequests,
  options: ListenerOptions,
  route?: AdmissionRoute,
): Listener {
  return createListener(
    gateway,
    {
      async handleRequest(incoming, downstream) {
        const path = matchStreamingPath(incoming.url.pathname);
        if (path === undefined) return await other.handleRequest(incoming, downstream);
        // Refuses the first fault in order, and a missing upgrade last: Kubernetes accepts
        // `Connection: x-upgrade` as one, the HTTP parser does not.
        await countingRefusals(path, incoming, gateway, () =>
          admitStreaming(path, incoming, gateway, route?.judge),
        );
        throw WIRE_ERRORS["no-upgrade"].streaming();
      },
      async handleUpgrade(incoming, client) {
        const path = matchStreamingPath(incoming.url.pathname);
        if (path !== undefined)
          return await runResumable(apiServerLeg(path, gateway, route), incoming, client, gateway);
        await other.handleUpgrade(incoming, client);
        if (incoming.trail !== undefined) completeWithSocket(incoming.trail, client.socket);
      },
      refuse: (downstream, { status }) => writeStatus(downstream, status),
      refuseUpgrade,
      attributesOf: (user, { method, url }) =>
        requestAttributes(user, { method, path: url.pathname, query: url.searchParams }),
      isLongRunning: ({ pathname }) =>
        matchStreamingPath(pathname) !== undefined || isOutputPath(pathname) || isAttachPath(pathname),
    },
    options,
  );
}
