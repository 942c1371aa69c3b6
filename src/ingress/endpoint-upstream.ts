import { HttpUpstream } from "../http/upstream/http-upstream.ts";
import { Http2Upstream } from "../http/upstream/http2-upstream.ts";
import { type DialOptions, dial, type UpstreamEndpoint } from "../net/dial.ts";
import { UpstreamError } from "../net/upstream-error.ts";

/** The same endpoint is asked by every request: its failing handshakes are told once in so long, in milliseconds. */
export const TLS_FAILURE_INTERVAL_MS = 60_000;

/** One endpoint and its connections, by the version of HTTP that its Service says it speaks. */
export class EndpointUpstream {
  readonly endpoint: UpstreamEndpoint;
  readonly http1: HttpUpstream;
  readonly #dialTimeoutMs: number;
  readonly #onTlsFailure: ((cause: string) => void) | undefined;
  #http2: Http2Upstream | undefined;
  #toldAtMs = Number.NEGATIVE_INFINITY;

  /** `onTlsFailure` is told why a handshake failed, of plain requests as of upgrades. */
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

  /** What a dial to this endpoint ended with. Anything but a failed handshake is ignored here. */
  dialFailed(error: unknown): void {
    if (!(error instanceof UpstreamError && error.code === "dial-failed" && error.hasConnected)) return;
    const nowMs = performance.now();
    if (nowMs - this.#toldAtMs < TLS_FAILURE_INTERVAL_MS) return;
    this.#toldAtMs = nowMs;
    this.#onTlsFailure?.(error.message);
  }

  /** Idle connections close now, those in use when their exchanges are over. */
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
