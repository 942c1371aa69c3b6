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

/** A page of 500 large objects fits. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** From the request to the last byte of an answer that has an end. */
export const ANSWER_TIMEOUT_MS = 60_000;

export interface ApiClientOptions {
  readonly kubeconfig: Kubeconfig;
  readonly dialTimeoutMs: number;
  readonly maxAnswerBytes?: number;
  readonly answerTimeoutMs?: number;
  /** The API server refused the client's own account something: 403. */
  readonly onForbidden?: () => void;
  /** Connects in another way, through a proxy; the socket is as `dial` gives it. */
  readonly connect?: ConstructorParameters<typeof HttpUpstream>[0]["connect"];
}

export interface ApiRequest {
  readonly method?: string;
  /** Below the server's own path, with its query. */
  readonly path: string;
  readonly body?: { readonly contentType: string; readonly json: unknown };
  readonly signal?: AbortSignal | undefined;
}

/** Requests to one API server with the credentials of a kubeconfig, over few connections that are used again. */
export class ApiClient {
  readonly #options: ApiClientOptions;
  readonly #prefix: string;
  #upstream: { readonly tls: UpstreamTlsOptions; readonly http: HttpUpstream } | undefined;
  #isClosed = false;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#prefix = new URL(options.kubeconfig.server).pathname.replace(/(?<!\/)\/+$/, "");
  }

  /** The connections, with the certificates of the moment. */
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

  /** The whole answer, parsed. Rejects with ApiError, AnswerTooLargeError, MalformedAnswerError, or what broke the connection. */
  async json(request: ApiRequest): Promise<unknown> {
    const { answerTimeoutMs = ANSWER_TIMEOUT_MS, maxAnswerBytes = MAX_ANSWER_BYTES } = this.#options;
    // By hand: what AbortSignal.any makes of a signal that lives as long as the process is not let go in every version of Node.
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

  /** A 2xx answer whose body is yet to come and the caller's to read or destroy. Rejects as `json` does. */
  async open(request: ApiRequest): Promise<IncomingMessage> {
    const response = await this.#send(request, await this.#options.kubeconfig.headers());
    const { statusCode = 0, headers } = response;
    if (statusCode >= 200 && statusCode < 300) return response;
    // The next request reads tokens and asks plugins anew.
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
      // After the response, too: an abort or a broken connection shows in both.
      request.on("error", reject);
      request.end(payload);
    });
  }
}
