import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { StatusError } from "@sluice/client/internal/api/status";
import { createHttp1Server, type Http1Bounds } from "@sluice/client/internal/http/downstream/http1-server";
import { headerListOf } from "@sluice/client/internal/http/header-list";
import type { LingerTimes } from "@sluice/client/internal/net/linger";
import type { SessionClock } from "@sluice/client/internal/net/session-clock";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { Resumption } from "@sluice/protocols/resume";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { requestUrlOf } from "../../http/request-url.ts";
import type { ResumableRunContext, SessionRunContext } from "../context.ts";
import { PendingClient } from "../incoming-request.ts";
import { resumptionIn } from "../resumable/resumable-sessions.ts";
import { attachToHeld, callerIn, type ResumedRequest, resumeSession } from "./resume-session.ts";

/** The parts that closing a connection needs. */
export interface ResponseContext {
  readonly clock: SessionClock;
  readonly lingerTimes: LingerTimes;
}

/** Writes answers in the listener's format. */
interface Responder {
  /** Refuses an upgrade, and closes. */
  refuseUpgrade(socket: Duplex, refusal: StatusError, context: ResponseContext): void;
}

/**
 * A resumption that one worker passes to another, with its user's groups. Past it: 431; the client
 * tries again until its window ends.
 */
const MAX_HEAD_BYTES = 1024 * 1024;

type OwnerContext = Pick<ResumableRunContext, "resumable" | "clock" | "timeouts" | "logger">;

export function ownerServerBounds({ timeouts }: Pick<OwnerContext, "timeouts">): Http1Bounds {
  const { handshakeMs: headMs, keepAliveMs, streamIdleMs: takingMs } = timeouts;
  return { maxHeaderBytes: MAX_HEAD_BYTES, headMs, keepAliveMs, takingMs };
}

/**
 * Accepts resumptions that other processes of this gateway have authorized, and checks their proofs.
 * Only those processes may be able to reach its socket. Not yet listening.
 */
export function createOwnerServer(gateway: OwnerContext, responder: Responder): Server {
  return createHttp1Server(ownerServerBounds(gateway), {
    onRequest: (_request, response) => void response.writeHead(404).end(),
    onUpgrade: (request, socket, early) =>
      void takeResumption(
        { request, socket, early },
        gateway,
        responder,
        async (resumption, user, incoming, client) =>
          attachToHeld(resumption, user, incoming, client, gateway),
      ),
  });
}

/**
 * Accepts a resumption from another replica, for a session of any process of this one. It is not
 * forwarded to a third replica.
 */
export function takeFromReplica(
  request: IncomingMessage,
  socket: Duplex,
  early: Buffer,
  gateway: OwnerContext & Pick<SessionRunContext, "limits" | "sessions">,
  responder: Responder,
): Promise<void> {
  const withoutPeers = { ...gateway, peers: undefined };
  return takeResumption(
    { request, socket, early },
    gateway,
    responder,
    (resumption, user, incoming, client) => resumeSession(resumption, user, incoming, client, withoutPeers),
  );
}

type Resume = (
  resumption: Resumption,
  user: UserInfo,
  incoming: ResumedRequest,
  client: PendingClient,
) => Promise<void>;

/** A request to upgrade, as node:http reports it. */
interface UpgradeRequested {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly early: Buffer;
}

/** Never rejects. */
async function takeResumption(
  { request, socket, early }: UpgradeRequested,
  gateway: OwnerContext,
  responder: Responder,
  resume: Resume,
): Promise<void> {
  const client = new PendingClient(socket, early);
  const { method = "", url: target = "/" } = request;
  const headers = headerListOf(request.rawHeaders);
  try {
    const resumption = resumptionIn(headers);
    const user = callerIn(headers);
    if (resumption === undefined || user === undefined) throw WIRE_ERRORS["resumption-none"].streaming();
    await resume(resumption, user, { method, headers, url: requestUrlOf(target) }, client);
  } catch (error) {
    client.release();
    if (error instanceof UpstreamError && error.code === "aborted") {
      socket.destroy();
      return;
    }
    if (!(error instanceof StatusError)) gateway.logger.error({ error }, "a resumption failed unexpectedly");
    const refusal = error instanceof StatusError ? error : WIRE_ERRORS["resumption-failed"].streaming();
    responder.refuseUpgrade(socket, refusal, { clock: gateway.clock, lingerTimes: gateway.timeouts });
  }
}
