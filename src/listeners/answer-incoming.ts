import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { StatusError } from "@sluice/client/internal/api/status";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { type HeaderLine, trimWhitespace } from "@sluice/client/internal/http/header-list";
import { beginTrace } from "@sluice/client/internal/http/trace-headers";
import { destroySocket } from "@sluice/client/internal/net/abort-socket";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { reportFault } from "@sluice/client/internal/observability/faults";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import { type AuditTrail, CLIENT_LEFT } from "../access/audit/audit-trail.ts";
import type { RequestSource } from "../access/authn/authenticator.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { requestUrlOf } from "../http/request-url.ts";
import { UNREAD_BODY_LINGER_MS } from "../http/upstream/forward-options.ts";
import { HandshakeRefusal } from "../sessions/client-handshake.ts";
import type { IncomingStreaming } from "../sessions/incoming-request.ts";
import { PendingClient } from "../sessions/incoming-request.ts";
import type { ResponseContext } from "../sessions/resumption/owner-server.ts";
import { answerAndClose } from "./answer.ts";
import { type AuditedRoutes, auditTrailOf, completeWithResponse } from "./audit-request.ts";
import { type ListenerContext, networkOf } from "./edge-rules.ts";
import type { RequestSeats } from "./request-seats.ts";
import { peerCertificatesOf } from "./serving-certificate.ts";
import type { RequestHead } from "./websocket-stream.ts";

/** The rest is a path of the pod's or Service's own server, which may be spelled in any way. */
const OWN_SERVER = /^\/api\/v1\/namespaces\/[^/]+\/(?:pods|services)\/[^/]+\/proxy(?=\/)/;
/**
 * RFC 3986 section 2.3: letters, digits, `-`, `.`, `_` and `~` mean the same whether escaped or
 * not.
 */
const ESCAPED_UNRESERVED = /%(?:2[de]|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/i;
const ESCAPED_SEPARATOR = /%(?:2f|5c)/i;

/**
 * Throws StatusError 400 for a path that two readers could understand differently. kube-apiserver
 * decodes once and keeps dot segments; URL parsers remove them, and read `\` as `/` and `#` as an
 * end.
 */
export function requireOneSpelling(target: string): void {
  // Absolute-form targets are for forward proxies, and `//host/path` could be read as one.
  if (!target.startsWith("/") || target.startsWith("//")) {
    throw WIRE_ERRORS["target-not-path"].streaming();
  }
  const [path = ""] = target.split("?", 1);
  // Most paths match this.
  if (/^(?:\/[\w~-][\w.:@~-]*)+\/?$/.test(path) && !target.includes("#")) return;
  if (/[^\x21-\x7e]|\\/.test(path) || target.includes("#")) {
    throw ambiguous("it has a character that must be percent-encoded");
  }
  if (/%(?![0-9a-f]{2})/i.test(path)) throw ambiguous("it has a percent sign that escapes nothing");
  const head = OWN_SERVER.exec(path)?.[0] ?? path;
  if (ESCAPED_UNRESERVED.test(head))
    throw ambiguous("it has an escape of a letter, digit, '-', '.', '_' or '~'");
  if (ESCAPED_SEPARATOR.test(head)) throw ambiguous("it has an escaped slash");
  if (head.includes("//")) throw ambiguous("it has an empty segment");
  requireUtf8(head);
  // One character for each escape: it does not matter here whether the bytes are UTF-8.
  const decoded = path.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  if (decoded.split(/[/\\]/).some((segment) => segment === "." || segment === "..")) {
    throw ambiguous("it has a dot segment");
  }
}

function requireUtf8(path: string): void {
  try {
    decodeURIComponent(path);
  } catch {
    throw ambiguous("it has escapes that are not UTF-8");
  }
}

function ambiguous(why: string) {
  return WIRE_ERRORS["path-ambiguous"].streaming({ why });
}

/**
 * A listener's routes. They throw a refusal as a StatusError; `refuse` writes it in the listener's
 * format.
 */
export interface ListenerRoutes extends AuditedRoutes {
  /** Set for a kubelet: its API server forwards the page's Origin and has already checked it. */
  readonly takesAnyOrigin?: true;
  handleRequest(incoming: IncomingStreaming, downstream: HttpDownstream): Promise<void>;
  handleUpgrade(incoming: IncomingStreaming, client: PendingClient): Promise<void>;
  refuse(downstream: HttpDownstream, refusal: StatusError): void;
  refuseUpgrade(socket: Duplex, refusal: StatusError, context: ResponseContext): void;
}

/** Answers a plain request. Rejects only for the gateway's own faults. */
export async function answerRequest(
  downstream: HttpDownstream,
  socket: Duplex,
  gateway: ListenerContext,
  routes: ListenerRoutes,
  seats: RequestSeats,
): Promise<void> {
  let trail: AuditTrail | undefined;
  let incoming: IncomingRequest | undefined;
  try {
    const { method, target, headers } = downstream;
    const onGone = (listener: () => void): void => downstream.onClose(listener);
    incoming = incomingOf({ method, target, headers, socket }, gateway, routes, onGone);
    trail = incoming.trail;
    endWithResponse(incoming.trace, downstream);
    if (trail !== undefined) completeWithResponse(trail, downstream);
    const admit = await seats.arrive(downstream, incoming.source);
    // An answered client may send its body in drops for ever.
    if (downstream.hasBody) downstream.onClose(() => discardRest(downstream));
    await routes.handleRequest({ ...incoming, admit }, downstream);
  } catch (error) {
    const refusal = statusErrorOf(error);
    logRefusal(incoming, refusal, gateway);
    trail?.complete(refusal.status);
    await refuse(downstream, refusal, routes);
  }
}

async function refuse(
  downstream: HttpDownstream,
  refusal: StatusError,
  routes: Pick<ListenerRoutes, "refuse">,
): Promise<void> {
  routes.refuse(downstream, refusal);
  discardRest(downstream);
}

function discardRest(downstream: HttpDownstream): void {
  if (!downstream.isBodyComplete) downstream.discardBody(UNREAD_BODY_LINGER_MS);
}

/**
 * Answers an upgrade request. Resolves with the status sent; undefined if the client left. Rejects only
 * for the gateway's own faults.
 */
export async function answerUpgrade(
  request: RequestHead,
  socket: Duplex,
  early: Buffer,
  gateway: ListenerContext,
  routes: ListenerRoutes,
): Promise<number | undefined> {
  const client = new PendingClient(socket, early);
  const answerContext = { clock: gateway.clock, lingerTimes: gateway.timeouts };
  let trail: AuditTrail | undefined;
  let incoming: IncomingStreaming | undefined;
  try {
    incoming = incomingOf(request, gateway, routes, (listener) => onAbort(client.signal, listener));
    trail = incoming.trail;
    if (routes.takesAnyOrigin !== true) requireAllowedOrigin(incoming, request.socket, gateway);
    await routes.handleUpgrade(incoming, client);
    return client.status;
  } catch (error) {
    // A queue reports a client that left with the same 429 as one that waited too long.
    const isLeft = client.signal.aborted && error instanceof StatusError && error.code === 429;
    client.release();
    if (isLeft || (error instanceof UpstreamError && error.code === "aborted")) {
      incoming?.trace?.end(0);
      trail?.complete(CLIENT_LEFT);
      destroySocket(socket);
      return undefined;
    }
    if (error instanceof HandshakeRefusal) {
      incoming?.trace?.end(error.status);
      trail?.complete({ code: error.status });
      const headers = [...error.headers, ["Content-Type", "text/plain; charset=utf-8"] as const];
      answerAndClose(socket, error.status, headers, Buffer.from(error.message), answerContext);
      return error.status;
    }
    const refusal = statusErrorOf(error);
    logRefusal(incoming, refusal, gateway);
    incoming?.trace?.end(refusal.code);
    trail?.complete(refusal.status);
    routes.refuseUpgrade(socket, refusal, answerContext);
    return refusal.code;
  }
}

/**
 * Logs a refused request once; sessions log their own refusals. Omits the query, which may contain a
 * token.
 */
function logRefusal(
  incoming: IncomingStreaming | undefined,
  { code, message: reason }: StatusError,
  { logger }: ListenerContext,
): void {
  if (incoming === undefined || incoming.notes?.isLogged === true || (code !== 401 && code !== 403)) return;
  const { method, url, remoteAddress, notes } = incoming;
  const { user, requestedBy } = notes ?? {};
  logger.info(
    { method, path: url.pathname, remoteAddress, user, requestedBy, code, reason },
    "request refused",
  );
}

/** Any other error is the gateway's fault: log it in full, and answer without details. */
function statusErrorOf(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  reportFault("request", error);
  return WIRE_ERRORS["gateway-failed"].streaming();
}

/** Throws StatusError 403 for web pages that may not open sessions with their browser's own credentials. */
function requireAllowedOrigin(
  incoming: IncomingStreaming,
  socket: Duplex,
  { edge, metrics }: ListenerContext,
): void {
  const isTls = (socket as Partial<TLSSocket>).encrypted === true;
  const refusal = edge.originRefusal(incoming, { isTls, remoteAddress: incoming.remoteAddress });
  if (refusal === undefined) return;
  metrics.access.connectionRefused("origin");
  throw refusal;
}

/** Applies to HTTP/2 only: the next hop over HTTP/1.1 would read `admin ` as `admin`. */
function isSpacedImpersonation([name, value]: HeaderLine): boolean {
  return /^impersonate-/i.test(name) && trimWhitespace(value) !== value;
}

type IncomingRequest = IncomingStreaming & { readonly source: RequestSource };

function incomingOf(
  { method, target, headers, socket }: RequestHead,
  { edge, audit, limits, tracing }: ListenerContext,
  routes: ListenerRoutes,
  onGone: RequestSource["onGone"],
): IncomingRequest {
  requireOneSpelling(target);
  if (headers.length > limits.maxRequestHeaders) throw WIRE_ERRORS["too-many-headers"].streaming();
  if (headers.some(isSpacedImpersonation)) throw WIRE_ERRORS["impersonation-spaced"].streaming();
  const { remoteAddress = "", remotePort } = socket as Socket;
  const sourceAddresses = edge.sourceAddressesOf(headers, remoteAddress);
  const incoming = {
    method,
    target,
    url: requestUrlOf(target),
    headers,
    peer: peerCertificatesOf(socket),
    remoteAddress,
    source: {
      address: networkOf(sourceAddresses[0] ?? remoteAddress),
      connection: `${remoteAddress} ${remotePort}`,
      onGone,
    },
    sourceAddresses,
    isPeerTrusted: edge.isTrustedProxy(remoteAddress),
    notes: {},
    trace: beginTrace(tracing, { method, target, headers }, socket, sourceAddresses),
  };
  return audit === undefined ? incoming : { ...incoming, trail: auditTrailOf(incoming, audit, routes) };
}

function onAbort(signal: AbortSignal, listener: () => void): void {
  if (signal.aborted) listener();
  else signal.addEventListener("abort", listener, { once: true });
}

function endWithResponse(trace: RequestTrace | undefined, downstream: HttpDownstream): void {
  if (trace === undefined) return;
  downstream.onClose(() => trace.end(downstream.hasResponded ? downstream.status : 0));
}
