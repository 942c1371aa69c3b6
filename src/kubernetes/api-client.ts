import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { type Status, statusOfBody } from "@sluice/client/internal/api/status-body";
import {
  askJson,
  JSON_CLIENT_HEADERS,
  openAnswer,
  withAddress,
} from "@sluice/client/internal/http/upstream/ask-json";
import { HttpUpstream } from "@sluice/client/internal/http/upstream/http-upstream";
import { wholeBody } from "@sluice/client/internal/http/upstream/whole-body";
import type { Kubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import { addressOfUrl } from "@sluice/client/internal/net/dial";
import { UpstreamTls, type UpstreamTlsOptions } from "@sluice/client/internal/net/tls";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";

/**
 * The size of one answer of the live API, such as a page of 500 large objects. Past it a list asks
 * for half the page; other reads fail.
 */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/**
 * The time for an answer of the live API to its last byte, except watches. Past it a list asks for
 * half the page; other reads fail.
 */
const ANSWER_TIMEOUT_MS = 60_000;
const MAX_REFUSAL_BYTES = 64 * 1024;

/** One day; longer waits are cut to it. */
const MAX_RETRY_AFTER_SECONDS = 86_400;

interface ApiClientOptions {
  readonly kubeconfig: Kubeconfig;
  readonly dialTimeoutMs: number;
  readonly maxAnswerBytes?: number;
  readonly answerTimeoutMs?: number;
  /** The API server answered 403 to the gateway's own account. */
  readonly onForbidden?: () => void;
  /**
   * Replaces the direct connection, for example with one through a proxy. Returns a socket, as
   * `dial` does.
   */
  readonly connect?: ConstructorParameters<typeof HttpUpstream>[0]["connect"];
}

export interface ApiRequest {
  readonly method?: string;
  /** The path and query, relative to the server's base path. */
  readonly path: string;
  readonly body?: { readonly contentType: string; readonly json: unknown };
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends requests to one API server with a kubeconfig's credentials, over a few reused connections.
 */
export class ApiClient {
  readonly #options: ApiClientOptions;
  readonly #prefix: string;
  #upstream: { readonly tls: UpstreamTlsOptions; readonly http: HttpUpstream } | undefined;
  #isClosed = false;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#prefix = new URL(options.kubeconfig.server).pathname.replace(/(?<!\/)\/+$/, "");
  }

  /** The connection pool, with the current certificates. */
  get upstream(): HttpUpstream {
    const { kubeconfig, dialTimeoutMs, connect } = this.#options;
    const { tls } = kubeconfig;
    if (this.#upstream?.tls === tls) return this.#upstream.http;
    this.#upstream?.http.close();
    const { isTls, ...address } = addressOfUrl(kubeconfig.server);
    const endpoint = { ...address, tls: isTls ? new UpstreamTls(tls) : undefined };
    this.#upstream = { tls, http: new HttpUpstream({ endpoint, dialTimeoutMs, connect }) };
    return this.#upstream.http;
  }

  /**
   * Reads the whole answer and parses it as an object. Rejects with ApiError, AnswerTooLargeError,
   * MalformedAnswerError or an UpstreamError.
   */
  async json(request: ApiRequest): Promise<unknown> {
    const { answerTimeoutMs = ANSWER_TIMEOUT_MS, maxAnswerBytes = MAX_ANSWER_BYTES } = this.#options;
    const own = await this.#ownRequest(request);
    const { body } = await askJson(this.upstream, {
      ...own,
      timeoutMs: answerTimeoutMs,
      maxBytes: maxAnswerBytes,
      requireGood: (answer) => this.#requireGood(answer),
    });
    if (typeof body === "object" && body !== null) return body;
    throw new MalformedAnswerError("the API server's answer is not a JSON object");
  }

  /**
   * Resolves with a 2xx answer before its body; the caller reads or destroys it. Rejects as `json`
   * does.
   */
  async open(request: ApiRequest): Promise<IncomingMessage> {
    const own = await this.#ownRequest(request);
    const { upstream } = this;
    const headers = [...JSON_CLIENT_HEADERS, ...own.headers];
    try {
      const answer = await openAnswer(upstream, { ...own, headers });
      await this.#requireGood(answer);
      return answer;
    } catch (error) {
      throw error instanceof UpstreamError ? withAddress(upstream, error) : error;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#upstream?.http.close();
  }

  /** Get the upstream after this call: renewed credentials may bring another certificate. */
  async #ownRequest({ method, path, body, signal }: ApiRequest) {
    const headers = await this.#options.kubeconfig.headers();
    if (this.#isClosed) throw new Error("the client is closed");
    const sent = body && {
      contentType: body.contentType,
      bytes: Buffer.from(JSON.stringify(body.json)),
    };
    // An API server may close an idle connection as a read is sent.
    const isRepeatable = method === undefined || method === "GET";
    return { method, path: this.#prefix + path, headers, body: sent, signal, isRepeatable };
  }

  async #requireGood(answer: IncomingMessage): Promise<void> {
    const { statusCode = 0, headers } = answer;
    if (statusCode >= 200 && statusCode < 300) return;
    // Makes the next request read tokens and run plugins again.
    if (statusCode === 401) this.#options.kubeconfig.forget();
    if (statusCode === 403) this.#options.onForbidden?.();
    throw new ApiError(statusCode, await wholeBody(answer, MAX_REFUSAL_BYTES).catch(() => ""), headers);
  }
}

/** The API server refused a request. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: number;
  readonly status: Status | undefined;
  /** The wait from the server's Retry-After header. */
  readonly retryAfterMs: number | undefined;

  constructor(code: number, body: Uint8Array | string, headers: IncomingHttpHeaders = {}) {
    const status = statusOfBody(body);
    super(status?.message ?? `the API server answered ${code}`);
    this.code = status?.code || code;
    this.status = status;
    const header = Number.parseInt(headers["retry-after"] ?? "", 10);
    const seconds = Number.isNaN(header) ? status?.details?.retryAfterSeconds : header;
    this.retryAfterMs =
      seconds === undefined ? undefined : 1_000 * Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER_SECONDS);
  }

  /**
   * The server cannot use the requested version: it expired (410), or the server has not reached it
   * yet (504 with the cause ResourceVersionTooLarge).
   */
  get isVersionUseless(): boolean {
    const isTooLarge = this.status?.details?.causes?.some(
      ({ reason }) => reason === "ResourceVersionTooLarge",
    );
    return this.code === 410 || (this.code === 504 && isTooLarge === true);
  }
}

/** The answer is not JSON, or lacks the expected shape. */
export class MalformedAnswerError extends Error {
  override readonly name = "MalformedAnswerError";
}
