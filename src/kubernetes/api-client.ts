import { type IncomingMessage, request as sendRequest } from "node:http";
import { USER_AGENT } from "../config/version.ts";
import { flatHeaders, type HeaderLine, type HeaderList } from "../http/header-list.ts";
import { HttpUpstream } from "../http/upstream/http-upstream.ts";
import { wholeBody } from "../http/upstream/whole-body.ts";
import { addressOfUrl } from "../net/endpoint-of-url.ts";
import { joinHostPort } from "../net/go-dial-error.ts";
import { UpstreamTls, type UpstreamTlsOptions } from "../net/tls.ts";
import { ApiError, MalformedAnswerError } from "./api-error.ts";
import type { Kubeconfig } from "./kubeconfig.ts";

/** Enough for a page of 500 large objects. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** From sending the request to the answer's last byte; watches have no such limit. */
export const ANSWER_TIMEOUT_MS = 60_000;

export interface ApiClientOptions {
  readonly kubeconfig: Kubeconfig;
  readonly dialTimeoutMs: number;
  readonly maxAnswerBytes?: number;
  readonly answerTimeoutMs?: number;
  /** The API server answered 403 to the gateway's own account. */
  readonly onForbidden?: () => void;
  /**
   * Replaces the direct connection, for example by one through a proxy; gives a socket as `dial`
   * does.
   */
  readonly connect?: ConstructorParameters<typeof HttpUpstream>[0]["connect"];
}

export interface ApiRequest {
  readonly method?: string;
  /** Relative to the server's base path, query included. */
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
   * Reads and parses the whole answer. Rejects with ApiError, AnswerTooLargeError,
   * MalformedAnswerError or the connection's error.
   */
  async json(request: ApiRequest): Promise<unknown> {
    const { answerTimeoutMs = ANSWER_TIMEOUT_MS, maxAnswerBytes = MAX_ANSWER_BYTES } = this.#options;
    // Some versions of Node leak the signals that AbortSignal.any derives from a signal as old as
    // the process.
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    const timer = setTimeout(abort, answerTimeoutMs);
    request.signal?.addEventListener("abort", abort, { once: true });
    try {
      const response = await this.open({ ...request, signal: controller.signal });
      return JSON.parse((await wholeBody(response, maxAnswerBytes)).toString("utf8"));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new MalformedAnswerError("the API server's answer is no JSON");
    } finally {
      clearTimeout(timer);
      request.signal?.removeEventListener("abort", abort);
    }
  }

  /**
   * Resolves with a 2xx answer before its body; the caller reads or destroys it. Rejects as `json`
   * does.
   */
  async open(request: ApiRequest): Promise<IncomingMessage> {
    const response = await this.#send(request, await this.#options.kubeconfig.headers());
    const { statusCode = 0, headers } = response;
    if (statusCode >= 200 && statusCode < 300) return response;
    // The next request reads tokens and runs plugins again.
    if (statusCode === 401) this.#options.kubeconfig.forget();
    if (statusCode === 403) this.#options.onForbidden?.();
    throw new ApiError(statusCode, await wholeBody(response, 64 * 1024).catch(() => ""), headers);
  }

  close(): void {
    this.#isClosed = true;
    this.#upstream?.http.close();
  }

  #send(
    { method = "GET", path, body, signal }: ApiRequest,
    credentials: HeaderList,
  ): Promise<IncomingMessage> {
    if (this.#isClosed) return Promise.reject(new Error("the client is closed"));
    const { endpoint, agent } = this.upstream;
    const payload = body && Buffer.from(JSON.stringify(body.json));
    const lines: HeaderLine[] = [
      ["Host", joinHostPort(endpoint.host, endpoint.port)],
      ["Accept", "application/json"],
      ["User-Agent", USER_AGENT],
      ...credentials,
      ...(payload && body
        ? ([
            ["Content-Type", body.contentType],
            ["Content-Length", String(payload.byteLength)],
          ] as const)
        : []),
    ];
    return new Promise((resolve, reject) => {
      const request = sendRequest({
        agent,
        host: endpoint.host,
        port: endpoint.port,
        method,
        path: this.#prefix + path,
        headers: flatHeaders(lines),
        setHost: false,
        ...(signal && { signal }),
      });
      request.on("response", resolve);
      // Stays after the response: an abort or a broken connection emits an error on both.
      request.on("error", reject);
      request.end(payload);
    });
  }
}
