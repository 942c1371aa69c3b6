import { connect, type Socket } from "node:net";
import {
  encodeResumption,
  RESUME_HEADER,
  RESUME_PROTOCOL,
  type Resumption,
} from "../../../protocols/resume/index.ts";
import type { UserInfo } from "../../access/authn/authenticator.ts";
import { serviceUnavailable } from "../../api/status.ts";
import { answerSwitched, switchedStatusOf } from "../../http/answer-switched.ts";
import { isSwitchedTo, requestUpgrade, type SwitchedUpgrade } from "../../http/upgrade-request.ts";
import { webSocketRequestLines } from "../../http/websocket-request.ts";
import { withReusedReads } from "../../net/accepted-socket.ts";
import { UpstreamError } from "../../net/upstream-error.ts";
import { carryForwarded } from "../carry-forwarded.ts";
import type { GatewayContext } from "../context.ts";
import type { IncomingStreaming } from "../incoming-request.ts";
import { refusalErrorOf } from "../node-refusal.ts";
import type { PendingClient } from "../pending-client.ts";
import { callerLine } from "./owner-server.ts";
import type { ResumableSessions } from "./resumable-sessions.ts";

/** What passing a resumption on needs of the gateway. */
export type ElsewhereContext = Pick<GatewayContext, "clock" | "limits" | "sessions" | "timeouts"> & {
  readonly resumable: ResumableSessions;
};

/**
 * Resumes a session of another process: authorized here, requested there, then relayed. Throws the
 * owner's StatusError, 410 or 503 where it has none, and UpstreamError "aborted".
 */
export async function proxyResume(
  socketPath: string,
  resumption: Resumption,
  key: string,
  user: UserInfo,
  { url, trail }: IncomingStreaming,
  client: PendingClient,
  gateway: ElsewhereContext,
): Promise<void> {
  const { clock, limits, sessions, timeouts, resumable } = gateway;
  let response: SwitchedUpgrade;
  try {
    const answer = await requestUpgrade({
      endpoint: { host: "holder", port: 0 },
      method: "GET",
      path: url.pathname,
      headers: [
        ["Connection", "Upgrade"],
        ["Upgrade", "websocket"],
        ...webSocketRequestLines({ key, protocols: [RESUME_PROTOCOL] }),
        [RESUME_HEADER, encodeResumption(resumption)],
        callerLine(user),
      ],
      signal: client.signal,
      connect: () => connectTo(socketPath),
      responseHeaderTimeoutMs: timeouts.upgradeResponseMs,
    });
    if (answer.kind === "refused") throw await refusalErrorOf(answer, limits.maxRefusalBodyBytes);
    response = answer;
  } catch (error) {
    if (isGone(error)) throw resumable.unknown(user, url.pathname);
    if (!(error instanceof UpstreamError) || error.code === "aborted") throw error;
    throw serviceUnavailable("the process that holds the session does not answer");
  }
  if (!isSwitchedTo(response, "websocket")) {
    response.socket.destroy();
    throw serviceUnavailable("the process that holds the session does not answer");
  }
  const downstream = withReusedReads(client.release());
  answerSwitched(downstream.socket, response.rawHeaders, response.statusMessage);
  // The session's limits are its owner's.
  const unlimited = { ...timeouts, idleMs: Number.POSITIVE_INFINITY };
  carryForwarded(downstream, response, { clock, sessions, timeouts: unlimited }, {});
  trail?.complete({ code: switchedStatusOf(downstream.socket) });
}

/**
 * A process that ended removes its socket; one that was killed leaves a file without a listener.
 */
function isGone(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === "ENOENT" || code === "ECONNREFUSED";
}

/** Rejects with the system's own error. */
function connectTo(socketPath: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: socketPath, allowHalfOpen: true });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject).on("error", () => {});
      resolve(socket);
    });
  });
}
