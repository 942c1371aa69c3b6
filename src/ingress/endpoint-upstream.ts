import type { UpstreamEndpoint } from "../upstream/dial.ts";
import { HttpUpstream } from "../upstream/http-upstream.ts";
import { Http2Upstream } from "../upstream/http2-upstream.ts";

/** One endpoint and its connections, by the version of HTTP that its Service says it speaks. */
export class EndpointUpstream {
  readonly endpoint: UpstreamEndpoint;
  readonly http1: HttpUpstream;
  readonly #dialTimeoutMs: number;
  #http2: Http2Upstream | undefined;

  constructor(endpoint: UpstreamEndpoint, dialTimeoutMs: number) {
    this.endpoint = endpoint;
    this.#dialTimeoutMs = dialTimeoutMs;
    this.http1 = new HttpUpstream({ endpoint, dialTimeoutMs });
  }

  get http2(): Http2Upstream {
    this.#http2 ??= new Http2Upstream(this.endpoint, this.#dialTimeoutMs);
    return this.#http2;
  }

  /** Idle connections close now, those in use when their exchanges are over. */
  close(): void {
    this.http1.close();
    this.#http2?.close();
  }
}
