import {
  type HeaderLine,
  type HeaderList,
  headerValue,
  headerValues,
  listElements,
  withHeader,
  withoutHeaders,
} from "@sluice/client/internal/http/header-list";
import {
  isSwitchedTo,
  requestUpgrade,
  type SwitchedUpgrade,
  type UpgradeRequest,
  type UpgradeResponse,
} from "@sluice/client/internal/http/upgrade/upgrade-request";
import {
  checkWebSocketAnswer,
  newWebSocketRequest,
  webSocketRequestLines,
} from "@sluice/client/internal/http/upgrade/websocket-request";
import type { UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import type { SessionClock } from "@sluice/client/internal/net/session-clock";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import {
  agreementOf,
  isFinalStatus,
  isReset,
  offerLine,
  resumingSocket,
} from "@sluice/client/internal/sessions/resuming-client";
import { type Agreement, RESUME_HEADER, RESUME_PROTOCOL } from "@sluice/protocols/resume";
import type { SessionRunContext } from "./context.ts";
import type { UpstreamRequest } from "./upstream-request.ts";

const WEBSOCKET_LINES = ["sec-websocket-version", "sec-websocket-key", "sec-websocket-protocol"];

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

export interface ResumableUpgradeOptions {
  readonly clock: SessionClock;
  /** Bytes that this side can buffer in each direction; default `OFFERED_WINDOW_BYTES`. */
  readonly windowBytes?: number | undefined;
  /**
   * Returns request headers for a later attempt, since credentials may have been renewed; default: the
   * first ones.
   */
  readonly renewHeaders?: (() => Promise<HeaderList>) | undefined;
  /**
   * Called when the connection is lost and when the session resumes, with a sentence that contains no
   * secrets.
   */
  note?(text: string): void;
  /** The same events, for counters. */
  onChange?(event: "lost" | "resumed"): void;
  readonly heartbeat?: { readonly pingIntervalMs: number; readonly silenceMs: number } | undefined;
}

/**
 * Like `requestUpgrade`, for a WebSocket, which must name its subprotocols. If the upstream agrees
 * (protocols/resume), the socket outlives its connections. The answer looks plain. Throws
 * UpstreamError.
 */
async function requestResumableUpgrade(
  request: UpgradeRequest,
  options: ResumableUpgradeOptions,
): Promise<UpgradeResponse> {
  const protocols = listElements(headerValues(request.headers, "Sec-WebSocket-Protocol"));
  const offered = [...protocols, RESUME_PROTOCOL].join(", ");
  const headers = [
    ...withHeader(request.headers, "Sec-WebSocket-Protocol", offered),
    offerLine(options.windowBytes),
  ];
  const response = await requestUpgrade({ ...request, headers });
  if (response.kind !== "switched") return response;
  const key = headerValue(request.headers, "Sec-WebSocket-Key") ?? "";
  const chosen = headerValue(response.rawHeaders, "Sec-WebSocket-Protocol")?.trim();
  if (chosen !== RESUME_PROTOCOL) return response;
  const agreement = agreementOf(response.rawHeaders, protocols, options.windowBytes);
  const isFit = checkWebSocketAnswer(response, { key, protocols: [RESUME_PROTOCOL] }).ok;
  if (agreement === undefined || !isFit) {
    response.socket.destroy();
    throw new UpstreamError("upgrade-mismatch", "the upstream's agreement to resume makes no sense");
  }
  return resumable(response, agreement, request, options);
}

function resumable(
  response: SwitchedUpgrade,
  agreement: Agreement,
  request: UpgradeRequest,
  { clock, renewHeaders, note, onChange, heartbeat }: ResumableUpgradeOptions,
): SwitchedUpgrade {
  const socket = resumingSocket(response, agreement, {
    clock,
    heartbeat,
    ...(note && { note }),
    ...(onChange && { onChange }),
    redial: async (line, signal) => {
      const headers = (await renewHeaders?.()) ?? request.headers;
      return redial({ ...request, headers, signal }, line);
    },
    isBrokenOff: (error) =>
      error instanceof UpstreamError &&
      (error.code === "closed-before-response" || error.hasConnected === true || isReset(error)),
    isFinal: (error) => error instanceof RefusedResumption && isFinalStatus(error.status),
  });
  const answered = withHeader(response.rawHeaders, "Sec-WebSocket-Protocol", agreement.protocol);
  return {
    ...response,
    socket,
    head: Buffer.alloc(0),
    rawHeaders: withoutHeaders(answered, [RESUME_HEADER.toLowerCase()]),
  };
}

async function redial(request: UpgradeRequest, line: HeaderLine) {
  const webSocket = newWebSocketRequest([RESUME_PROTOCOL]);
  const kept = withoutHeaders(request.headers, WEBSOCKET_LINES);
  // Without the query a server that is not a Sluice finds no command to run a second time.
  const [path = ""] = request.path.split("?");
  const headers = [...kept, ...webSocketRequestLines(webSocket), line];
  const response = await requestUpgrade({ ...request, path, headers });
  if (response.kind === "refused") {
    response.body.destroy();
    throw new RefusedResumption(response.status);
  }
  if (!isSwitchedTo(response, "websocket") || !checkWebSocketAnswer(response, webSocket).ok) {
    response.socket.destroy();
    throw new UpstreamError("upgrade-mismatch", "unable to upgrade: missing upgrade headers in response");
  }
  return { socket: response.socket, head: response.head, responseHeaders: response.rawHeaders };
}

class RefusedResumption extends Error {
  override readonly name = "RefusedResumption";
  readonly status: number;

  constructor(status: number) {
    super(`the server refused to resume the session with ${status}`);
    this.status = status;
  }
}
