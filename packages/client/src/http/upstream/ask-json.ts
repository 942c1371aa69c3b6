import { isUtf8 } from "node:buffer";
import { type IncomingMessage, request as sendRequest } from "node:http";
import { USER_AGENT } from "../../config/version.ts";
import { addressOfUrl, type UpstreamEndpoint } from "../../net/dial.ts";
import { joinHostPort } from "../../net/go-dial-error.ts";
import { UpstreamTls } from "../../net/tls.ts";
import { UpstreamError } from "../../net/upstream-error.ts";
import { flatHeaders, type HeaderList } from "../header-list.ts";
import { exchangeErrorOf } from "./exchange-error.ts";
import { HttpUpstream } from "./http-upstream.ts";
import { AnswerTooLargeError, wholeBody } from "./whole-body.ts";

/** A request of our own. Host, and a body's type and length, are added to `headers`. */
interface OwnRequest {
  /** Default: GET. */
  readonly method?: string | undefined;
  /** The path, with a query if there is one. */
  readonly path: string;
  /** Sent unchanged, and never quoted in errors. */
  readonly headers?: HeaderList | undefined;
  readonly body?: { readonly contentType: string; readonly bytes: Buffer } | undefined;
  readonly signal?: AbortSignal | undefined;
  /** True for a request without effect: it is sent once more if an idle connection had closed. */
  readonly isRepeatable?: boolean | undefined;
}

interface JsonRequest extends OwnRequest {
  /** Limit from the call to the answer's last byte. */
  readonly timeoutMs: number;
  /** Default: MAX_JSON_ANSWER_BYTES. */
  readonly maxBytes?: number | undefined;
  /** Sees the answer before its body is read; an exception is the result. */
  readonly requireGood?: ((answer: IncomingMessage) => Promise<void>) | undefined;
}

export interface JsonAnswer {
  readonly status: number;
  /** Undefined if the body is not JSON in UTF-8, or is compressed, which no request asks for. */
  readonly body: unknown;
}

/**
 * An answer of a webhook or issuer: usually a few hundred bytes. Past it the request fails; a
 * webhook's is denied.
 */
const MAX_JSON_ANSWER_BYTES: number = 1024 * 1024;

/**
 * Interim answers (1xx) to one request of our own. Past it the request fails: they would keep a
 * processor busy until the time limit.
 */
const MAX_INTERIM_ANSWERS = 16;

/** Headers of every JSON request. */
export const JSON_CLIENT_HEADERS: HeaderList = [
  ["Accept", "application/json"],
  ["User-Agent", USER_AGENT],
];

/**
 * Sends one request and reads JSON, without redirects. Rejects with AnswerTooLargeError, or with an
 * UpstreamError that names the address, and neither headers nor bodies.
 */
export async function askJson(upstream: HttpUpstream, request: JsonRequest): Promise<JsonAnswer> {
  const { timeoutMs, maxBytes = MAX_JSON_ANSWER_BYTES, headers = [], signal, requireGood } = request;
  const address = addressOf(upstream);
  // Some versions of Node leak the signals that AbortSignal.any derives from a signal as old as the
  // process.
  const ending = new AbortController();
  const abort = (): void => ending.abort(signal?.reason);
  const timer = setTimeout(
    () =>
      ending.abort(new UpstreamError("response-timeout", `no answer from ${address} within ${timeoutMs} ms`)),
    timeoutMs,
  );
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort, { once: true });
  try {
    const own = { ...request, headers: [...JSON_CLIENT_HEADERS, ...headers], signal: ending.signal };
    const answer = await openAnswer(upstream, own);
    await requireGood?.(answer);
    const body = await wholeBody(answer, maxBytes).catch((error: Error) => {
      throw error instanceof AnswerTooLargeError ? error : cutOff(error, upstream, ending.signal);
    });
    // Node takes an abort for the end of a body without a length.
    if (ending.signal.aborted) throw abortedBy(ending.signal);
    const isPlain = /^(?:identity)?$/i.test(answer.headers["content-encoding"] ?? "");
    return { status: answer.statusCode ?? 0, body: isPlain && isUtf8(body) ? parsed(body) : undefined };
  } catch (error) {
    throw error instanceof UpstreamError ? withAddress(upstream, error) : error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

/** Like `askJson`, over a new connection. */
export async function askJsonOnce(endpoint: UpstreamEndpoint, request: JsonRequest): Promise<JsonAnswer> {
  const upstream = new HttpUpstream({ endpoint, dialTimeoutMs: request.timeoutMs });
  try {
    return await askJson(upstream, request);
  } finally {
    upstream.close();
  }
}

/** Like `askJsonOnce`, to an https URL. `ca`: the authorities to trust; absent: Node's. */
export async function askHttpsUrl(
  url: string,
  ca: string | undefined,
  request: Omit<JsonRequest, "path">,
): Promise<JsonAnswer> {
  const { host, port, isTls } = addressOfUrl(url);
  if (!isTls) throw new UpstreamError("invalid-request", `${host} must be asked over https`);
  const { pathname, search } = new URL(url);
  return askJsonOnce({ host, port, tls: new UpstreamTls({ ca }) }, { ...request, path: pathname + search });
}

/**
 * Resolves with the answer before its body; the caller reads or destroys it. Rejects with an
 * UpstreamError. The signal also breaks off the body.
 */
export async function openAnswer(upstream: HttpUpstream, request: OwnRequest): Promise<IncomingMessage> {
  if (request.signal?.aborted) throw abortedBy(request.signal);
  const first = await send(upstream, request);
  const answer = first === "stale" ? await send(upstream, request) : first;
  if (answer !== "stale") return answer;
  throw new UpstreamError("closed-before-response", "the connection was closed before the answer");
}

function send(
  upstream: HttpUpstream,
  { method = "GET", path, headers = [], body, signal, isRepeatable = false }: OwnRequest,
): Promise<IncomingMessage | "stale"> {
  const { host, port } = upstream.endpoint;
  const framing: HeaderList =
    body === undefined
      ? []
      : [
          ["Content-Type", body.contentType],
          ["Content-Length", String(body.bytes.byteLength)],
        ];
  return new Promise((resolve, reject) => {
    const request = sendRequest({
      agent: upstream.agent,
      host,
      port,
      method,
      path,
      headers: flatHeaders([["Host", addressOf(upstream)], ...headers, ...framing]),
      setHost: false,
      ...(signal && { signal }),
    });
    request.on("response", resolve);
    let interim = 0;
    request.on("information", () => {
      interim += 1;
      if (interim <= MAX_INTERIM_ANSWERS) return;
      reject(new UpstreamError("invalid-status", `more than ${MAX_INTERIM_ANSWERS} interim answers`));
      request.destroy();
    });
    // Without a listener Node closes the connection, and emits no error.
    request.on("upgrade", (answer, socket) => {
      socket.destroy();
      reject(new UpstreamError("invalid-status", `unexpected status code ${answer.statusCode ?? 0}`));
    });
    // Node emits an abort's error only when the request has its connection.
    const onAbort = (): void => {
      if (signal) reject(abortedBy(signal));
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    request.on("close", () => signal?.removeEventListener("abort", onAbort));
    // Stays after the response: an abort or a broken connection emits an error on both.
    request.on("error", (error: NodeJS.ErrnoException) => {
      const isStale = request.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
      if (isStale && isRepeatable && !signal?.aborted) resolve("stale");
      else reject(failureOf(error, upstream, signal));
    });
    request.end(body?.bytes);
  });
}

/** Adds the address to the message, unless it is there already, as after a failed dial. */
export function withAddress({ endpoint }: HttpUpstream, error: UpstreamError): UpstreamError {
  const address = joinHostPort(endpoint.host, endpoint.port);
  const { code, message, cause, hasConnected, spoken } = error;
  if (message.includes(address) || message.includes(`lookup ${endpoint.host}`)) return error;
  return new UpstreamError(code, `${address}: ${message}`, { cause, hasConnected, spoken });
}

function failureOf(error: Error, upstream: HttpUpstream, signal: AbortSignal | undefined): UpstreamError {
  return signal?.aborted === true ? abortedBy(signal) : exchangeErrorOf(error, addressOf(upstream));
}

function abortedBy({ reason }: AbortSignal): UpstreamError {
  if (reason instanceof UpstreamError) return reason;
  const isLate = reason instanceof Error && reason.name === "TimeoutError";
  return new UpstreamError("aborted", isLate ? "context deadline exceeded" : "context canceled", {
    cause: reason,
  });
}

function cutOff(error: Error, upstream: HttpUpstream, signal: AbortSignal): UpstreamError {
  const failure = failureOf(error, upstream, signal);
  if (failure.message !== "EOF") return failure;
  return new UpstreamError("truncated-body", "unexpected EOF", { cause: error });
}

function addressOf({ endpoint }: HttpUpstream): string {
  return joinHostPort(endpoint.host, endpoint.port);
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}
