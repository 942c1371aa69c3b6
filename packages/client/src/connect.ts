import type { Readable } from "node:stream";
import { upgradeFailureText } from "@sluice/protocols/websocket";
import { USER_AGENT } from "./config/version.ts";
import {
  type HeaderLine,
  type HeaderList,
  headerValue,
  headerValues,
  listElements,
} from "./http/header-list.ts";
import {
  isSwitchedTo,
  type RefusedUpgrade,
  requestUpgrade,
  type SwitchedUpgrade,
  type UpgradedSocket,
  type UpgradeResponse,
} from "./http/upgrade/upgrade-request.ts";
import {
  checkWebSocketAnswer,
  newWebSocketRequest,
  type WebSocketRequest,
  webSocketRequestLines,
} from "./http/upgrade/websocket-request.ts";
import { ConnectError, type ConnectLeg } from "./http/upstream/connect-error.ts";
import { UpstreamError } from "./net/upstream-error.ts";
import { apiStatusIn, printable, quotedRefusal } from "./refusal.ts";
import type { Target } from "./target.ts";

export interface DialRequest {
  /** Relative to the target's path, percent-encoded, query included. */
  readonly path: string;
  /**
   * "websocket" offers `protocols` as subprotocols; "spdy" offers SPDY/3.1 with
   * X-Stream-Protocol-Version lines. Best first.
   */
  readonly transport: "websocket" | "spdy";
  readonly protocols: readonly string[];
  /** Defaults to GET for WebSocket and POST for SPDY. */
  readonly method?: string | undefined;
  /** Added to the target's headers. Default: none. */
  readonly headers?: HeaderList | undefined;
  /** Ends the attempt; after `dial` resolves, the socket belongs to the caller. Default: nothing does. */
  readonly signal?: AbortSignal | undefined;
  /** Limit for name lookup, TCP and TLS together, in milliseconds. Default: 30,000. */
  readonly dialTimeoutMs?: number | undefined;
  /** From sending the request to the complete response head, in milliseconds. Default: 30,000. */
  readonly responseHeaderTimeoutMs?: number | undefined;
}

/**
 * An upgraded connection. The socket is paused and belongs to the caller; `head` holds the bytes
 * after the 101.
 */
export interface UpgradedConnection {
  readonly socket: UpgradedSocket;
  readonly head: Buffer;
  readonly transport: "websocket" | "spdy";
  /** The server's choice; "" if it named none. */
  readonly protocol: string;
  readonly responseHeaders: HeaderList;
  /** The socket outlives its connections and checks them itself, so silence must not close it. */
  readonly isResumable?: boolean;
}

/**
 * Connects to the target, through its proxy if it has one, and upgrades. Never follows redirects.
 * Throws ConnectError, which says what failed, after closing the socket.
 */
export async function dial(target: Target, request: DialRequest): Promise<UpgradedConnection> {
  const webSocket = newWebSocketRequest(request.protocols);
  const headers = [
    ...(await target.headers()),
    ...(request.headers ?? []),
    ...upgradeLines(request, webSocket),
  ];
  const response = await send(target, request, withUserAgent([["Host", target.url.host], ...headers]));
  if (response.kind === "refused") throw await refusalError(request, response);
  try {
    const protocol = request.transport === "spdy" ? checkSpdy(response) : checkWebSocket(response, webSocket);
    const { socket, head, rawHeaders: responseHeaders } = response;
    return { socket, head, transport: request.transport, protocol, responseHeaders };
  } catch (error) {
    response.socket.destroy();
    throw error;
  }
}

/** Keeps the caller's own User-Agent, such as one from the agent's client. */
function withUserAgent(headers: HeaderList): HeaderList {
  return headerValue(headers, "user-agent") === undefined
    ? [...headers, ["User-Agent", USER_AGENT]]
    : headers;
}

function upgradeLines({ transport, protocols }: DialRequest, webSocket: WebSocketRequest): HeaderLine[] {
  if (transport === "spdy") {
    const versions = protocols.map((version): HeaderLine => ["X-Stream-Protocol-Version", version]);
    return [["Connection", "Upgrade"], ["Upgrade", "SPDY/3.1"], ...versions];
  }
  return [["Connection", "Upgrade"], ["Upgrade", "websocket"], ...webSocketRequestLines(webSocket)];
}

async function send(target: Target, request: DialRequest, headers: HeaderList): Promise<UpgradeResponse> {
  const { endpoint, trace } = target;
  const method = request.method ?? (request.transport === "spdy" ? "POST" : "GET");
  const path = target.pathOf(request.path);
  trace.request?.(method, target.url.origin + path, headers);
  const startedMs = performance.now();
  try {
    const { dialTimeoutMs, responseHeaderTimeoutMs, signal } = request;
    const response = await requestUpgrade({
      endpoint,
      method,
      path,
      headers,
      dialTimeoutMs,
      responseHeaderTimeoutMs,
      signal,
      connect: (options) => target.connect(endpoint, options),
    });
    const elapsedMs = performance.now() - startedMs;
    trace.response?.(response.status, response.statusMessage, response.rawHeaders, elapsedMs);
    return response;
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    throw new ConnectError(legOf(error), error.message, { cause: error });
  }
}

export function legOf(error: UpstreamError): ConnectLeg {
  switch (error.code) {
    case "aborted":
      return "aborted";
    case "dial-failed":
      return error.hasConnected ? "tls" : "tcp";
    // A complete answer without an upgrade: 2xx or 3xx.
    case "invalid-status":
      return "http";
    case "closed-before-response":
      // Under TLS 1.3 a server refuses our certificate only after the handshake.
      return error.message.startsWith("remote error: tls:") ? "tls" : "response";
    default:
      return "response";
  }
}

function checkSpdy(response: SwitchedUpgrade): string {
  if (!isSwitchedTo(response, "SPDY/3.1")) {
    const text = "unable to upgrade connection: the server switched, but not to SPDY/3.1";
    throw new ConnectError("handshake", text, { httpStatus: 101 });
  }
  return headerValue(response.rawHeaders, "X-Stream-Protocol-Version")?.trim() ?? "";
}

function checkWebSocket(response: SwitchedUpgrade, webSocket: WebSocketRequest): string {
  const handshake = checkWebSocketAnswer(response, webSocket);
  if (handshake.ok) return handshake.subprotocol;
  const text = upgradeFailureText(printable(handshake.message));
  throw new ConnectError("handshake", text, { httpStatus: 101 });
}

/** client-go's message for each transport: the Status's message, or else the start of the body. */
async function refusalError(request: DialRequest, response: RefusedUpgrade): Promise<ConnectError> {
  const body = await readRefusal(response.body);
  const apiStatus = apiStatusIn(body);
  const { status: httpStatus, statusMessage, rawHeaders } = response;
  const acceptedProtocols = listElements(headerValues(rawHeaders, "X-Accepted-Stream-Protocol-Versions"));
  const details = { httpStatus, apiStatus, acceptedProtocols };
  const statusText = printable(apiStatus?.message ?? "");
  if (request.transport === "spdy") {
    const text =
      apiStatus === undefined ? `unable to upgrade connection: ${quotedRefusal(body)}` : statusText;
    return new ConnectError("http", text, details);
  }
  const bad = `websocket: bad handshake (${httpStatus} ${printable(statusMessage)})`;
  const text =
    apiStatus === undefined
      ? upgradeFailureText(bad, body.byteLength === 0 ? undefined : quotedRefusal(body))
      : upgradeFailureText(statusText);
  return new ConnectError("http", text, details);
}

/**
 * Whether client-go tries SPDY next: after a complete HTTP answer other than a valid 101, or if the
 * library cannot use an HTTPS proxy. Never after failures of TCP, TLS or time, or after a 101.
 */
export function shouldFallBack(error: unknown): boolean {
  if (error instanceof ConnectError && error.isUpgradeFailure) return true;
  return error instanceof Error && error.message.includes("proxy: unknown scheme: https");
}

/**
 * A refusal's body: a Status is a few hundred bytes, a proxy's HTML page may be long. Past it the
 * rest is not read.
 */
const MAX_REFUSAL_BYTES: number = 64 * 1024;

/**
 * Reads the start of a refusal's body, then destroys the body. If the body breaks off, returns the
 * bytes so far.
 */
async function readRefusal(body: Readable): Promise<Buffer> {
  const parts: Buffer[] = [];
  let byteLength = 0;
  try {
    for await (const part of body) {
      const taken = (part as Buffer).subarray(0, MAX_REFUSAL_BYTES - byteLength);
      parts.push(taken);
      byteLength += taken.byteLength;
      if (byteLength >= MAX_REFUSAL_BYTES) break;
    }
  } catch {
    // People read the text; a part is better than nothing.
  }
  body.destroy();
  return Buffer.concat(parts);
}
