import type { Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import type { ResponseHead } from "@sluice/protocols/http1";
import { type DialOptions, dial, type UpstreamEndpoint } from "../../net/dial.ts";
import { goDialErrorText, joinHostPort } from "../../net/go-dial-error.ts";
import { abortedError, UpstreamError } from "../../net/upstream-error.ts";
import { type RequestTrace, traced } from "../../observability/trace.ts";
import { MAX_STATUS } from "../head-refusal.ts";
import {
  type HeaderLine,
  type HeaderList,
  hasHeader,
  headerListOf,
  headerTokens,
  headerValues,
  isHeaderName,
  isHeaderValue,
} from "../header-list.ts";
import { withTrace } from "../trace-headers.ts";
import { invalidStatus, ResponseBody, SingleResponse } from "../upstream/response-body.ts";

export interface UpgradeRequest {
  /** Absent: the request is not traced. */
  readonly trace?: RequestTrace | undefined;
  readonly endpoint: UpstreamEndpoint;
  readonly method: string;
  /** The path and query, percent-encoded as on the wire. */
  readonly path: string;
  /**
   * Sent in this order and case, with repetitions. `Host` is added from the endpoint only if it is
   * missing.
   */
  readonly headers: HeaderList;
  /** Limit for name lookup, TCP and TLS together. */
  readonly dialTimeoutMs?: number | undefined;
  /** Limit from the sent request to the complete response head. */
  readonly responseHeaderTimeoutMs?: number | undefined;
  readonly maxResponseHeadBytes?: number | undefined;
  /**
   * Returns any final answer, including success and redirects, to relay it within this time. Absent:
   * those are errors (CVE-2018-1002105).
   */
  readonly relayAnswersMs?: number | undefined;
  /**
   * Aborting destroys the upstream socket at once. After the promise has settled, the caller must
   * destroy the result.
   */
  readonly signal?: AbortSignal | undefined;
  /** Connects in another way than `dial`, e.g. through a proxy; the socket must be as from `dial`. */
  readonly connect?: ((options: DialOptions) => Promise<Socket>) | undefined;
}

/** Limits for reading a response head. */
type HeadExchange = Pick<
  UpgradeRequest,
  "endpoint" | "method" | "responseHeaderTimeoutMs" | "maxResponseHeadBytes" | "signal"
>;

interface AnsweredHead {
  readonly head: ResponseHead;
  /** Bytes after a response without a body, such as a 101. */
  readonly rest: Buffer;
  /** Reads the body. */
  readonly response: SingleResponse;
}

/** A socket, or a session over several of them (src/sessions/request-session.ts). */
export type UpgradedSocket = Duplex & { unref(): UpgradedSocket };

/**
 * The upstream switched protocols. `head` contains the bytes after its 101. The socket is half-open
 * capable, and paused: call `resume`, because a 'data' listener does not start it.
 */
export interface SwitchedUpgrade {
  readonly kind: "switched";
  readonly status: 101;
  readonly statusMessage: string;
  readonly rawHeaders: HeaderList;
  readonly socket: UpgradedSocket;
  readonly head: Buffer;
}

/**
 * The upstream answered 400 to 599. The body is decoded; destroying it or reading it to the end closes
 * the upstream.
 */
export interface RefusedUpgrade {
  readonly kind: "refused";
  readonly status: number;
  readonly statusMessage: string;
  readonly rawHeaders: HeaderList;
  readonly body: Readable;
}

export type UpgradeResponse = SwitchedUpgrade | RefusedUpgrade;

/** Kubernetes waits forever, but a node that accepts and stays silent must not block a session forever. */
const DEFAULT_RESPONSE_HEADER_TIMEOUT_MS = 30_000;

/**
 * Requests a protocol switch over a new connection. Sends only the head, because Go's SPDY servers
 * lose bytes before their 101. Follows no redirect (CVE-2018-1002105). Throws UpstreamError and leaves
 * no socket: "dial-failed", "closed-before-response", "response-timeout", "response-head-too-large",
 * "malformed-response", "invalid-status" (2xx, 3xx, other 1xx, above 599), "invalid-request",
 * "aborted".
 */
export async function requestUpgrade(request: UpgradeRequest): Promise<UpgradeResponse> {
  const requestHead = encodeRequestHead(request);
  const { endpoint, dialTimeoutMs, signal } = request;
  const connect = request.connect ?? ((options: DialOptions) => dial(endpoint, options));
  const socket = await traced(request.trace, "dial", () =>
    connect({ dialTimeoutMs, signal, reusesReads: true }),
  );
  try {
    const { head, rest, response } = await traced(request.trace, "upgrade", () =>
      exchangeHeads(socket, requestHead, request),
    );
    const { status, reason: statusMessage } = head;
    const rawHeaders = headerListOf(head.headers);
    if (status === 101) return { kind: "switched", status, statusMessage, rawHeaders, socket, head: rest };
    const isRelayed = request.relayAnswersMs !== undefined && status >= 200;
    if ((status < 400 && !isRelayed) || status > MAX_STATUS) throw invalidStatus(status);
    return {
      kind: "refused",
      status,
      statusMessage,
      rawHeaders,
      body: new ResponseBody(socket, response, { deadlineMs: request.relayAnswersMs }),
    };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** True if the 101 switches to that protocol, e.g. "SPDY/3.1". Ignores case, as client-go does. */
export function isSwitchedTo(response: SwitchedUpgrade, protocol: string): boolean {
  return (
    headerTokens(response.rawHeaders, "connection").includes("upgrade") &&
    headerTokens(response.rawHeaders, "upgrade").includes(protocol.toLowerCase())
  );
}

/** Throws UpstreamError "invalid-request". */
export function encodeRequestHead(
  request: Pick<UpgradeRequest, "endpoint" | "method" | "path" | "headers" | "trace">,
): Buffer {
  const { endpoint, method, path, headers } = request;
  if (!isHeaderName(method)) throw new UpstreamError("invalid-request", "invalid method");
  // A space or line end here would start a second request at the upstream.
  if (!/^[\x21-\x7e]+$/.test(path)) throw new UpstreamError("invalid-request", "invalid path");
  const hasBody =
    hasHeader(headers, "transfer-encoding") ||
    headerValues(headers, "content-length").some((value) => !/^0+$/.test(value));
  if (hasBody) throw new UpstreamError("invalid-request", "an upgrade request cannot have a body");

  const lines: HeaderLine[] = [...withTrace(headers, request.trace)];
  if (!hasHeader(headers, "host")) lines.unshift(["Host", joinHostPort(endpoint.host, endpoint.port)]);
  // RFC 9110 section 8.6. Without it some servers wait for a POST's body.
  if (method === "POST" && !hasHeader(headers, "content-length")) lines.push(["Content-Length", "0"]);
  let text = `${method} ${path} HTTP/1.1\r\n`;
  for (const [name, value] of lines) {
    if (!isHeaderName(name) || !isHeaderValue(value))
      throw new UpstreamError("invalid-request", "invalid header");
    text += `${name}: ${value}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, "latin1");
}

/**
 * Sends the request head and reads the final response head; the socket is paused afterwards. On
 * failure destroys it and throws UpstreamError as `requestUpgrade` does.
 */
export function exchangeHeads(
  socket: Socket,
  requestHead: Buffer,
  request: HeadExchange,
): Promise<AnsweredHead> {
  const { signal, endpoint, responseHeaderTimeoutMs = DEFAULT_RESPONSE_HEADER_TIMEOUT_MS } = request;
  if (signal?.aborted) return Promise.reject(abortedError());

  return new Promise((resolve, reject) => {
    const response = new SingleResponse(request.method, request.maxResponseHeadBytes);

    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.off("data", onData).off("end", onEnd).off("close", onEnd).off("error", onError);
      socket.pause();
    };
    const fail = (error: unknown): void => {
      settle();
      socket.destroy();
      reject(error);
    };
    const onAbort = (): void => fail(abortedError());
    const onTimeout = (): void =>
      fail(new UpstreamError("response-timeout", "net/http: timeout awaiting response headers"));
    const onData = (chunk: Buffer): void => {
      try {
        const rest = response.push(chunk);
        const { head } = response;
        if (head === undefined) return;
        settle();
        resolve({ head, rest, response });
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = (): void =>
      fail(new UpstreamError("closed-before-response", response.hasBytes ? "unexpected EOF" : "EOF"));
    // Under TLS 1.3 a server refuses our client certificate only now, so the error is worded as a
    // handshake's.
    const onError = (cause: Error): void => {
      const text = goDialErrorText(cause, joinHostPort(endpoint.host, endpoint.port));
      fail(new UpstreamError("closed-before-response", text, { cause }));
    };

    const timer = setTimeout(onTimeout, responseHeaderTimeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    socket.on("data", onData).on("end", onEnd).on("close", onEnd).on("error", onError);
    // A proxy's socket is paused after the proxy's own answer.
    socket.resume();
    socket.write(requestHead);
  });
}
