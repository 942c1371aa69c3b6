import type { Server } from "node:http";
import type { UserInfo } from "../../access/authn/authenticator.ts";
import { badRequest, internalError, StatusError } from "../../api/status.ts";
import { type HeaderLine, headerListOf, headerValue } from "../../http/header-list.ts";
import { createHttp1Server } from "../../http/http1-server.ts";
import { requestUrlOf } from "../../http/request-url.ts";
import type { GatewayContext } from "../context.ts";
import { PendingClient } from "../pending-client.ts";
import type { Responder } from "../responder.ts";
import { attachToHeld } from "./attach-to-held.ts";
import { resumptionIn } from "./resumable-sessions.ts";

/** Base64url of the user as JSON. */
const CALLER_HEADER = "Sluice-Caller";
/** Of a request between processes: a user may be in many groups. */
const MAX_HEAD_BYTES = 1024 * 1024;

/** Tells the owner which user resumes the session. */
export function callerLine(user: UserInfo): HeaderLine {
  return [CALLER_HEADER, Buffer.from(JSON.stringify(user)).toString("base64url")];
}

/**
 * Takes resumptions that other processes of this gateway have authorized; the proof is checked here.
 * For a socket that only they can reach. Not yet listening.
 */
export function createHolderServer(
  gateway: Pick<GatewayContext, "resumable" | "clock" | "timeouts" | "logger">,
  responder: Responder,
): Server {
  const { handshakeMs: headMs, keepAliveMs } = gateway.timeouts;
  return createHttp1Server(
    { maxHeaderBytes: MAX_HEAD_BYTES, headMs, keepAliveMs },
    {
      onRequest: (_request, response) => void response.writeHead(404).end(),
      onUpgrade: (request, socket, early) => {
        const client = new PendingClient(socket, early);
        const { method = "", url: target = "/" } = request;
        const headers = headerListOf(request.rawHeaders);
        try {
          const resumption = resumptionIn(headers);
          const caller = headerValue(headers, CALLER_HEADER);
          if (resumption === undefined || caller === undefined) throw badRequest("this is no resumption");
          const user = JSON.parse(Buffer.from(caller, "base64url").toString()) as UserInfo;
          const url = requestUrlOf(target);
          attachToHeld(resumption, user, { method, headers, url }, client, gateway);
        } catch (error) {
          client.release();
          if (!(error instanceof StatusError))
            gateway.logger.error({ error }, "a resumption failed unexpectedly");
          const refusal =
            error instanceof StatusError ? error : internalError("the session could not be resumed");
          responder.refuseUpgrade(socket, refusal, { clock: gateway.clock, lingerTimes: gateway.timeouts });
        }
      },
    },
  );
}
