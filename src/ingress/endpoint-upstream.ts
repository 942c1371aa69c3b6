import { HttpUpstream } from "@sluice/client/internal/http/upstream/http-upstream";
import { type DialOptions, dial, type UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { Http2Upstream } from "../http/upstream/http2-upstream.ts";

/**
 * The pause between log lines about failed TLS with one endpoint, which every request dials. Past
 * it the next failure is logged.
 */
const TLS_FAILURE_INTERVAL_MS = 60_000;

/** One endpoint and its connections, in the HTTP version that its Service declares. */
export class EndpointUpstream {
  readonly endpoint: UpstreamEndpoint;
  readonly http1: HttpUpstream;
  readonly #dialTimeoutMs: number;
  readonly #onTlsFailure: ((cause: string) => void) | undefined;
  #http2: Http2Upstream | undefined;
  #toldAtMs = Number.NEGATIVE_INFINITY;

  /** `onTlsFailure` receives the cause of a failed handshake, for plain requests and upgrades. */
  constructor(endpoint: UpstreamEndpoint, dialTimeoutMs: number, onTlsFailure?: (cause: string) => void) {
    this.endpoint = endpoint;
    this.#dialTimeoutMs = dialTimeoutMs;
    this.#onTlsFailure = onTlsFailure;
    const connect = endpoint.tls && { connect: this.#dial.bind(this) };
    this.http1 = new HttpUpstream({ endpoint, dialTimeoutMs, ...connect });
  }

  get http2(): Http2Upstream {
    this.#http2 ??= new Http2Upstream(this.endpoint, this.#dialTimeoutMs);
    return this.#http2;
  }

  /**
   * Call this with the error of a dial to this endpoint. Ignores all errors but failed handshakes.
   */
  dialFailed(error: unknown): void {
    if (!(error instanceof UpstreamError && error.code === "dial-failed" && error.hasConnected)) return;
    const nowMs = performance.now();
    if (nowMs - this.#toldAtMs < TLS_FAILURE_INTERVAL_MS) return;
    this.#toldAtMs = nowMs;
    this.#onTlsFailure?.(error.message);
  }

  /** Closes idle connections at once, and busy ones after their exchanges. */
  close(): void {
    this.http1.close();
    this.#http2?.close();
  }

  async #dial(endpoint: UpstreamEndpoint, options: DialOptions): ReturnType<typeof dial> {
    try {
      return await dial(endpoint, options);
    } catch (error) {
      this.dialFailed(error);
      throw error;
    }
  }
}
