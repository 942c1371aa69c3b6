import { RESUME_PROTOCOL } from "@sluice/protocols/resume";
import { type DialRequest, dial, type UpgradedConnection } from "./connect.ts";
import { ConnectError } from "./http/upstream/connect-error.ts";
import { defaultSessionTimes, type ResumeOptions } from "./session-times.ts";
import {
  agreementOf,
  isFinalStatus,
  isReset,
  offerLine,
  resumingSocket,
} from "./sessions/resuming-client.ts";
import type { Target } from "./target.ts";

/**
 * As `dial`, for a WebSocket session that survives lost connections (protocols/resume). If the
 * server agrees, `socket` continues over new connections, dialled with the same target and headers,
 * while the server keeps the session. Otherwise the result is that of `dial`. Throws ConnectError
 * as `dial` does. If the session is lost for good later, the socket is destroyed with an Error.
 */
export async function dialResumable(
  target: Target,
  request: DialRequest,
  { clock = defaultSessionTimes.clock, note, heartbeat }: ResumeOptions = {},
): Promise<UpgradedConnection> {
  const { protocols, headers = [] } = request;
  const connection = await dial(target, {
    ...request,
    protocols: [...protocols, RESUME_PROTOCOL],
    headers: [...headers, offerLine()],
  });
  if (connection.protocol !== RESUME_PROTOCOL) return connection;
  const agreement = agreementOf(connection.responseHeaders, protocols);
  if (agreement === undefined) {
    connection.socket.destroy();
    const text = "unable to upgrade streaming request: the server's agreement to resume makes no sense";
    throw new ConnectError("handshake", text, { httpStatus: 101 });
  }
  const [path = ""] = request.path.split("?");
  const socket = resumingSocket(connection, agreement, {
    clock,
    heartbeat,
    ...(note && { note }),
    redial: (line, signal) =>
      // Drops the query: another server than Sluice must not run the command a second time.
      dial(target, { ...request, path, protocols: [RESUME_PROTOCOL], headers: [...headers, line], signal }),
    isBrokenOff: (error) =>
      error instanceof ConnectError && (error.leg === "response" || error.leg === "tls" || isReset(error)),
    isFinal: (error) => error instanceof ConnectError && isFinal(error),
  });
  return { ...connection, socket, head: Buffer.alloc(0), protocol: agreement.protocol, isResumable: true };
}

function isFinal({ leg, httpStatus }: ConnectError): boolean {
  return leg === "aborted" || leg === "handshake" || (leg === "http" && isFinalStatus(httpStatus ?? 0));
}
