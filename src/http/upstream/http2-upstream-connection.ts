import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionRequestOptions,
  connect,
  constants,
  type OutgoingHttpHeaders,
} from "node:http2";
import type { Socket } from "node:net";
import { forgetTimer } from "@sluice/client/internal/net/abort-socket";
import { type DialOptions, dial, type UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { defaultHttp1Limits } from "@sluice/protocols/http1";
import { KEEPS_OUTER_SPACE } from "../http2-headers.ts";
import { watchHttp2Session } from "../watch-http2-session.ts";

export interface Http2UpstreamTimes {
  /** After this much silence with a request in progress, a PING tests the connection. */
  readonly silenceMs: number;
  /** The least time between PINGs: grpc-go takes more frequent ones for abuse and closes. */
  readonly pingIntervalMs: number;
}

/**
 * How long a backend that refused a stream gets no more streams per connection than it had then.
 * Past it more are tried.
 */
const LEARNED_LIMIT_MS = 10_000;

/**
 * The streams that an endpoint accepts on each connection, learned from its refusals: these may be
 * fewer than it announces.
 */
export class LearnedLimit {
  #streams = Number.POSITIVE_INFINITY;
  #untilMs = 0;

  get streams(): number {
    return performance.now() < this.#untilMs ? this.#streams : Number.POSITIVE_INFINITY;
  }

  refusedWith(openStreams: number): void {
    this.#streams = Math.min(this.streams, openStreams);
    this.#untilMs = performance.now() + LEARNED_LIMIT_MS;
  }
}

/** One connection to an h2c backend, and whether it should get another stream. */
export class Http2UpstreamConnection {
  readonly session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #answerMs: number;
  readonly #times: Http2UpstreamTimes;
  #openStreams = 0;
  readonly #learned: LearnedLimit;
  #cancelled = 0;
  #isRetired = false;
  /** The bytes received when the last unanswered request was sent, and the time since then. */
  #bytesRead: number | undefined;
  #silentSinceMs = 0;
  #isLooking = false;
  #pingedAtMs = Number.NEGATIVE_INFINITY;

  private constructor(
    session: ClientHttp2Session,
    socket: Socket,
    answerMs: number,
    times: Http2UpstreamTimes,
    learned: LearnedLimit,
  ) {
    this.session = session;
    this.#learned = learned;
    this.#socket = socket;
    this.#answerMs = answerMs;
    this.#times = times;
    session.once("goaway", () => this.retire());
  }

  /**
   * Resolves once the backend has shown that it speaks HTTP/2. Throws UpstreamError "dial-failed" or
   * "malformed-response".
   */
  static async open(
    endpoint: UpstreamEndpoint,
    dialTimeoutMs: number,
    times: Http2UpstreamTimes,
    learned: LearnedLimit,
  ): Promise<Http2UpstreamConnection> {
    const { host, port } = endpoint;
    const options: DialOptions = { dialTimeoutMs, allowHalfOpen: false };
    const socket = await dial(endpoint, options);
    const session = connect(`http://${host.includes(":") ? `[${host}]` : host}:${port}`, {
      createConnection: () => socket,
      settings: { enablePush: false },
      // As many header lines as an HTTP/1.1 backend may send. By default node:http2 resets streams
      // with more than 128.
      maxHeaderListPairs: defaultHttp1Limits.maxHeaders,
      ...KEEPS_OUTER_SPACE,
    });
    watchHttp2Session(session, socket);
    // Each stream reports the failure itself. The connection is only not used again.
    let failure: (Error & { code?: string }) | undefined;
    session.on("error", (error) => {
      failure = error;
    });
    return new Promise((resolve, reject) => {
      // A server without HTTP/2 shows it before it acknowledges our settings.
      session.once("remoteSettings", () => {
        session.setTimeout(0);
        resolve(new Http2UpstreamConnection(session, socket, dialTimeoutMs, times, learned));
      });
      session.once("close", () => {
        forgetTimer(session);
        reject(
          new UpstreamError("malformed-response", "the backend does not speak HTTP/2", {
            spoken: failure?.code === "ERR_HTTP2_ERROR" ? "HTTP/1" : undefined,
          }),
        );
      });
      session.setTimeout(dialTimeoutMs, () => session.destroy());
    });
  }

  /** True if it accepts no new streams; open ones continue. */
  get isRetired(): boolean {
    return this.#isRetired || this.session.closed || this.session.destroyed;
  }

  get openStreams(): number {
    return this.#openStreams;
  }

  /**
   * Streams that were cancelled on this connection. Backends close connections with many of them
   * (CVE-2023-44487).
   */
  get cancelled(): number {
    return this.#cancelled;
  }

  /** True if it has as many streams as the backend accepts, or the backend takes no more body bytes. */
  get isFull(): boolean {
    const { maxConcurrentStreams = Number.POSITIVE_INFINITY } = this.session.remoteSettings;
    if (this.#openStreams >= Math.min(maxConcurrentStreams, this.#learned.streams)) return true;
    return this.#openStreams > 0 && (this.session.state.remoteWindowSize ?? 1) <= 0;
  }

  /**
   * Reserves a place for a stream before it is opened, so that concurrent choices see it. `request`
   * fills it, `leave` releases it.
   */
  reserve(): this {
    this.#openStreams += 1;
    return this;
  }

  leave(): void {
    this.#openStreams -= 1;
    if (this.#isRetired && this.#openStreams === 0) this.session.close();
  }

  /** Opens the stream for a reserved place. If the session cannot open one, releases the place and throws. */
  request(headers: OutgoingHttpHeaders, options?: ClientSessionRequestOptions): ClientHttp2Stream {
    let stream: ClientHttp2Stream;
    try {
      stream = this.session.request(headers, options);
    } catch (error) {
      this.leave();
      throw error;
    }
    stream.on("close", () => {
      this.leave();
      const { rstCode } = stream;
      if (rstCode === constants.NGHTTP2_CANCEL) this.#cancelled += 1;
      if (rstCode === constants.NGHTTP2_REFUSED_STREAM) this.#refused();
      if (rstCode === constants.NGHTTP2_ENHANCE_YOUR_CALM) this.retire();
    });
    this.#watch();
    return stream;
  }

  /** Accepts no new streams. The connection closes after the last open one. */
  retire(): void {
    this.#isRetired = true;
    if (this.#openStreams === 0) this.session.close();
  }

  /**
   * A backend that refuses a stream while others are open has reached its limit. One that refuses the
   * only stream wants no more on this connection.
   */
  #refused(): void {
    // A GOAWAY also refuses streams that came too late for it.
    if (this.isRetired) return;
    if (this.#openStreams === 0) this.retire();
    else this.#learned.refusedWith(this.#openStreams);
  }

  /**
   * A dead network sends nothing, so every request on the shared connection would time out until the
   * kernel gives up.
   */
  #watch(): void {
    const { bytesRead } = this.#socket;
    if (bytesRead === this.#bytesRead) return;
    this.#bytesRead = bytesRead;
    this.#silentSinceMs = performance.now();
    this.#lookIn(this.#times.silenceMs);
  }

  #tryIfSilent(): void {
    this.#isLooking = false;
    // Bytes have arrived since. The next request checks again.
    if (this.#socket.bytesRead !== this.#bytesRead) return;
    const { silenceMs, pingIntervalMs } = this.#times;
    const dueMs = Math.max(this.#silentSinceMs + silenceMs, this.#pingedAtMs + pingIntervalMs);
    const leftMs = dueMs - performance.now();
    if (leftMs > 0) this.#lookIn(leftMs);
    else this.#ping();
  }

  #lookIn(delayMs: number): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    setTimeout(() => this.#tryIfSilent(), delayMs).unref();
  }

  #ping(): void {
    const { session } = this;
    if (session.destroyed) return;
    this.#pingedAtMs = performance.now();
    const timer = setTimeout(() => {
      this.#isRetired = true;
      session.destroy(new UpstreamError("closed-before-response", "the connection answers no PING"));
    }, this.#answerMs).unref();
    session.ping(() => clearTimeout(timer));
  }
}
