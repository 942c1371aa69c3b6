import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { isHttp2Stream } from "@sluice/client/internal/net/abort-socket";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { frontProxyNames, withoutIdentity } from "../../access/authn/identity-headers.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { addForwardedFor } from "../../http/forwarded-headers.ts";
import { forwardUpgrade } from "../../http/upgrade/forward-upgrade.ts";
import { forwardExchange } from "../../http/upstream/http-forwarder.ts";
import type { ServingContext } from "../../listeners/edge-rules.ts";
import { unlimitedTimesOf } from "../../listeners/exchange-times.ts";
import { carryForwarded } from "../../sessions/carry-forwarded.ts";
import type { IncomingStreaming, PendingClient } from "../../sessions/incoming-request.ts";
import { forwardingError } from "../../sessions/upstream-errors.ts";
import type { KubeletUpstream } from "./kubelet-upstream.ts";
import { writeTextRefusal } from "./text-refusal.ts";

/**
 * Relays an authorized request with Sluice's own credentials instead of the caller's. Bodies stream
 * in both directions.
 */
export async function relayRequest(
  incoming: IncomingStreaming,
  downstream: HttpDownstream,
  kubelet: KubeletUpstream,
  gateway: ServingContext,
): Promise<void> {
  const editHeaders = await editorFor(incoming, kubelet, gateway);
  await forwardExchange(downstream, {
    upstream: kubelet.http,
    path: incoming.target,
    ...unlimitedTimesOf(gateway.timeouts),
    editHeaders,
    editResponseHeaders: (_edit, status) => noteRefusal(status, incoming, gateway),
    respondError: (error) => writeTextRefusal(downstream, forwardingError(error, "the kubelet")),
  });
}

/** Relays an upgrade that is not a container session. It counts as a session and obeys the session limits. */
export async function relayUpgrade(
  incoming: IncomingStreaming,
  client: PendingClient,
  kubelet: KubeletUpstream,
  gateway: ServingContext,
): Promise<void> {
  const editHeaders = await editorFor(incoming, kubelet, gateway);
  const { timeouts, limits } = gateway;
  const giveBack = gateway.sessions.admit();
  let isCarried = false;
  try {
    const status = await forwardUpgrade(client, {
      endpoint: kubelet.http.endpoint,
      method: incoming.method,
      path: incoming.target,
      headers: incoming.headers,
      editHeaders,
      dialTimeoutMs: timeouts.dialMs,
      responseHeaderTimeoutMs: timeouts.upgradeResponseMs,
      maxResponseHeadBytes: limits.maxUpgradeResponseHeadBytes,
      // A kubelet may ignore an upgrade. An HTTP/2 client would mistake its 200 for a WebSocket.
      relayAnswersMs: isHttp2Stream(client.socket) ? undefined : timeouts.streamIdleMs,
      carry: (downstream, answered) => {
        isCarried = true;
        carryForwarded(downstream, answered, gateway, { onOver: giveBack });
      },
    });
    noteRefusal(status, incoming, gateway);
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.code === "aborted") throw error;
    throw forwardingError(error, "the kubelet");
  } finally {
    if (!isCarried) giveBack();
  }
}

async function editorFor(
  incoming: IncomingStreaming,
  kubelet: KubeletUpstream,
  { authenticator, logger }: ServingContext,
): Promise<(edit: HeaderEdit) => HeaderEdit> {
  const own = await kubelet.credentials().catch((error: unknown) => {
    logger.error({ error }, "there are no credentials for the kubelet");
    throw WIRE_ERRORS["no-credentials"].kubelet();
  });
  return (received) => {
    received.dropIf(frontProxyNames(authenticator));
    const edit = new HeaderEdit(withoutIdentity(received.lines()));
    edit.set("Host", kubelet.authority);
    const { remoteAddress: peerAddress, isPeerTrusted = false } = incoming;
    addForwardedFor(edit, { peerAddress, isPeerTrusted });
    for (const [name, value] of own) edit.add(name, value);
    return edit;
  };
}

/** Sluice admitted the caller, so the refusal concerns Sluice's own credentials. */
function noteRefusal(status: number, { method, url }: IncomingStreaming, { logger }: ServingContext): void {
  if (status !== 401 && status !== 403) return;
  logger.warn(
    { method, path: url.pathname, status },
    "the kubelet refused the credentials of listeners.kubelet.upstream",
  );
}
