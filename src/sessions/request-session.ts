import {
  isSwitchedTo,
  requestUpgrade,
  type UpgradeRequest,
  type UpgradeResponse,
} from "@sluice/client/internal/http/upgrade/upgrade-request";
import { checkWebSocketAnswer } from "@sluice/client/internal/http/upgrade/websocket-request";
import type { UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import type { SessionRunContext } from "./context.ts";
import { type ResumableUpgradeOptions, requestResumableUpgrade } from "./resumable/resumable-upgrade.ts";
import type { UpstreamRequest } from "./upstream-request.ts";

interface SessionRequestOptions {
  readonly signal: AbortSignal;
  /** As in UpgradeRequest. */
  readonly connect?: UpgradeRequest["connect"];
  /** Absent: a WebSocket session does not outlive its connection. */
  readonly resume?: ResumableUpgradeOptions | undefined;
  readonly trace?: RequestTrace | undefined;
}

/**
 * Requests the session. Refuses a 101 to another protocol: no raw pipe without a validated 101
 * (CVE-2018-1002105). Also validates the answer to the gateway's own WebSocket handshake. Throws
 * UpstreamError.
 */
export async function requestSession(
  endpoint: UpstreamEndpoint,
  { method, path, headers, upgrade, webSocket }: UpstreamRequest,
  { limits, timeouts }: Pick<SessionRunContext, "limits" | "timeouts">,
  { signal, connect, resume, trace }: SessionRequestOptions,
): Promise<UpgradeResponse> {
  const request: UpgradeRequest = {
    endpoint,
    method,
    path,
    headers,
    trace,
    signal,
    connect,
    dialTimeoutMs: timeouts.dialMs,
    responseHeaderTimeoutMs: timeouts.upgradeResponseMs,
    maxResponseHeadBytes: limits.maxUpgradeResponseHeadBytes,
  };
  const response =
    resume === undefined || upgrade !== "websocket"
      ? await requestUpgrade(request)
      : await requestResumableUpgrade(request, resume);
  if (response.kind === "switched" && !isSwitchedTo(response, upgrade)) {
    response.socket.destroy();
    throw new UpstreamError("upgrade-mismatch", "unable to upgrade: missing upgrade headers in response");
  }
  if (response.kind === "switched" && webSocket !== undefined) {
    const handshake = checkWebSocketAnswer(response, webSocket);
    if (!handshake.ok) {
      response.socket.destroy();
      throw new UpstreamError("upgrade-mismatch", `unable to upgrade: ${handshake.message}`);
    }
  }
  return response;
}
