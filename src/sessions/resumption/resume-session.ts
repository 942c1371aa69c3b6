import { connect, type Socket } from "node:net";
import {
  flatHeaders,
  type HeaderLine,
  type HeaderList,
  headerValue,
} from "@sluice/client/internal/http/header-list";
import {
  isSwitchedTo,
  requestUpgrade,
  type SwitchedUpgrade,
} from "@sluice/client/internal/http/upgrade/upgrade-request";
import { acceptValueOf, webSocketRequestLines } from "@sluice/client/internal/http/upgrade/websocket-request";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import {
  encodeResumed,
  encodeResumption,
  RESUME_HEADER,
  RESUME_PROTOCOL,
  type Resumption,
} from "@sluice/protocols/resume";
import { checkServerHandshake } from "@sluice/protocols/websocket";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { answerSwitched, switchedStatusOf } from "../../http/upgrade/answer-switched.ts";
import { withReusedReads } from "../../net/accepted-socket.ts";
import { carryForwarded } from "../carry-forwarded.ts";
import { HandshakeRefusal } from "../client-handshake.ts";
import type { ResumableRunContext } from "../context.ts";
import type { IncomingStreaming, PendingClient } from "../incoming-request.ts";
import { refusalErrorOf } from "../node-refusal.ts";
import type { ResumableSessions } from "../resumable/resumable-sessions.ts";
import { type OwnerConnection, OwnerGoneError } from "../resumable/session-owner.ts";

/** The value is base64url of the user as JSON. */
const CALLER_HEADER = "Sluice-Caller";

/**
 * Resumes a session over this connection, for an authorized user. Proxies to the process that owns it.
 * Throws StatusError (`ResumableSessions.claim`, `proxyResume`) and HandshakeRefusal.
 */
export async function resumeSession(
  resumption: Resumption,
  user: UserInfo,
  incoming: ResumedRequest,
  client: PendingClient,
  gateway: Pick<ResumableRunContext, "resumable" | "peers" | "clock" | "limits" | "sessions" | "timeouts">,
): Promise<void> {
  const { resumable, peers, timeouts } = gateway;
  const place = resumable?.owner?.placeOf(resumption.session) ?? { at: "here" };
  if (resumable === undefined || place.at === "here") {
    return attachToHeld(resumption, user, incoming, client, gateway);
  }
  const key = webSocketKeyOf(incoming);
  const proxyTo = (owner: OwnerConnection): Promise<void> =>
    proxyResume(owner, { resumption, key, user }, incoming, client, { ...gateway, resumable });
  if (place.at === "sibling") return proxyTo(atSocket(place.socketPath, timeouts.upgradeResponseMs));
  if (place.at === "nowhere" || peers === undefined) throw resumable.unknown(user, incoming.url.pathname);
  const relay = peers.startRelay(place.replica);
  if (relay === undefined) throw WIRE_ERRORS["relays-out"].streaming();
  try {
    await proxyTo(relay);
  } catch (error) {
    relay.end();
    throw error;
  }
}

/** The gateway's parts that proxying a resumption needs. */
type ElsewhereContext = Pick<ResumableRunContext, "clock" | "limits" | "sessions" | "timeouts"> & {
  readonly resumable: ResumableSessions;
};

/** A resumption for another process: its proof, its WebSocket key, and its user, authorized here. */
interface ProxiedResumption {
  readonly resumption: Resumption;
  readonly key: string;
  readonly user: UserInfo;
}

/**
 * Resumes another process's session: authorizes it here, requests it there, then relays. Throws the
 * owner's StatusError, 410 without an owner, 503 without its answer, and UpstreamError "aborted".
 */
async function proxyResume(
  owner: OwnerConnection,
  { resumption, key, user }: ProxiedResumption,
  { url, trail }: ResumedRequest,
  client: PendingClient,
  gateway: ElsewhereContext,
): Promise<void> {
  const { clock, limits, sessions, timeouts, resumable } = gateway;
  let response: SwitchedUpgrade;
  try {
    const answer = await requestUpgrade({
      endpoint: { host: "owner", port: 0 },
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
      connect: (options) => owner.connect(options),
      responseHeaderTimeoutMs: owner.responseMs,
    });
    if (answer.kind === "refused") throw await refusalErrorOf(answer, limits.maxRefusalBodyBytes);
    response = answer;
  } catch (error) {
    if (isGone(error)) throw resumable.unknown(user, url.pathname);
    if (!(error instanceof UpstreamError) || error.code === "aborted") throw error;
    throw WIRE_ERRORS["resumption-silent"].streaming();
  }
  if (!isSwitchedTo(response, "websocket")) {
    response.socket.destroy();
    throw WIRE_ERRORS["resumption-silent"].streaming();
  }
  const downstream = withReusedReads(client.release());
  answerSwitched(downstream.socket, response.rawHeaders, response.statusMessage);
  // The owner applies the session's own limits.
  const unlimited = { ...timeouts, idleMs: Number.POSITIVE_INFINITY };
  carryForwarded(downstream, response, { clock, sessions, timeouts: unlimited }, {});
  trail?.complete({ code: switchedStatusOf(downstream.socket) });
}

/** A process that ended normally removed its socket. A killed one leaves a file without a listener. */
function isGone(error: unknown): boolean {
  if (error instanceof OwnerGoneError) return true;
  const cause = error instanceof UpstreamError ? error.cause : error;
  const code = (cause as NodeJS.ErrnoException | undefined)?.code;
  return code === "ENOENT" || code === "ECONNREFUSED";
}

/** The header line that names the resuming user to the process that owns the session. */
export function callerLine(user: UserInfo): HeaderLine {
  return [CALLER_HEADER, Buffer.from(JSON.stringify(user)).toString("base64url")];
}

/** The user that another process of the gateway sent; undefined if it sent none. Throws SyntaxError. */
export function callerIn(headers: HeaderList): UserInfo | undefined {
  const caller = headerValue(headers, CALLER_HEADER);
  if (caller === undefined) return undefined;
  return JSON.parse(Buffer.from(caller, "base64url").toString()) as UserInfo;
}

/** A resumption, received by this process or proxied by another one. */
export type ResumedRequest = Pick<IncomingStreaming, "method" | "headers" | "url" | "trail">;

/**
 * Resumes a session of this process. If it still has a connection, drops it, since the client knows
 * the newer one. Throws StatusError (see `ResumableSessions.claim`) and HandshakeRefusal.
 */
export function attachToHeld(
  resumption: Resumption,
  user: UserInfo,
  { method, headers, url, trail }: ResumedRequest,
  client: PendingClient,
  { resumable }: Pick<ResumableRunContext, "resumable">,
): void {
  const key = webSocketKeyOf({ method, headers });
  if (resumable === undefined) throw WIRE_ERRORS["resumption-off"].streaming();
  const socket = resumable.claim(resumption, user, url.pathname);
  // Ignores the old connection from here on, so that the offset in the answer is still right when the
  // client reads it.
  socket.detach();
  const lines: HeaderLine[] = [
    ["Upgrade", "websocket"],
    ["Connection", "Upgrade"],
    ["Sec-WebSocket-Accept", acceptValueOf(key)],
    ["Sec-WebSocket-Protocol", RESUME_PROTOCOL],
    [RESUME_HEADER, encodeResumed(socket.received)],
  ];
  const leg = withReusedReads(client.release());
  answerSwitched(leg.socket, lines);
  socket.attach(leg, resumption.received);
  resumable.resumed(user, url.pathname);
  trail?.complete({ code: switchedStatusOf(leg.socket) });
}

/** Throws HandshakeRefusal if the request is not a WebSocket handshake. */
function webSocketKeyOf({ method, headers }: Pick<IncomingStreaming, "method" | "headers">): string {
  const handshake = checkServerHandshake({ method, rawHeaders: flatHeaders(headers) });
  if (!handshake.ok) throw new HandshakeRefusal(handshake.status, handshake.headers, handshake.body);
  return handshake.key;
}

/** Connects to a process on this machine. */
function atSocket(socketPath: string, responseMs: number): OwnerConnection {
  return { connect: () => connectTo(socketPath), responseMs };
}

/** Rejects with the system's error. */
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
