import { type ClientHttp2Session, connect } from "node:http2";
import type { Socket } from "node:net";
import { DEFAULT_DIAL_TIMEOUT_MS, dial, type UpstreamEndpoint } from "../net/dial.ts";
import { UpstreamError } from "../net/upstream-error.ts";
import { watchHttp2Session } from "./watch-http2-session.ts";

export interface Http2UpstreamTimes {
  /** A request is on its way, and nothing has come for so long: the connection is tried by a PING. */
  readonly silenceMs: number;
  /** At least so long after the last PING: grpc-go takes more of them from a client for abuse, and closes. */
  readonly pingIntervalMs: number;
}

export const HTTP2_UPSTREAM_TIMES: Http2UpstreamTimes = { silenceMs: 10_000, pingIntervalMs: 300_000 };

/** One HTTP/2 upstream spoken to with prior knowledge (h2c), over one connection that all its exchanges share. */
export class Http2Upstream {
  readonly endpoint: UpstreamEndpoint;
  readonly #dialTimeoutMs: number;
  readonly #times: Http2UpstreamTimes;
  #session: Promise<ClientHttp2Session> | undefined;
  #socket: Socket | undefined;
  /** What had been read of it when a request was sent that nothing came behind yet, and since when that is so. */
  #bytesRead: number | undefined;
  #silentSinceMs = 0;
  #isLooking = false;
  #pingedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    endpoint: UpstreamEndpoint,
    dialTimeoutMs = DEFAULT_DIAL_TIMEOUT_MS,
    times: Http2UpstreamTimes = HTTP2_UPSTREAM_TIMES,
  ) {
    this.endpoint = endpoint;
    this.#dialTimeoutMs = dialTimeoutMs;
    this.#times = times;
  }

  /** A session that takes a new stream, for a request that is sent at once. Throws UpstreamError "dial-failed". */
  session(): Promise<ClientHttp2Session> {
    if (this.#session === undefined) {
      const opening = this.#open();
      this.#session = opening;
      // The next exchange dials anew.
      opening.catch(() => this.#forget(opening));
    }
    this.#watch();
    return this.#session;
  }

  /** Streams that are open go on; the connection closes behind the last one. */
  close(): void {
    const session = this.#session;
    this.#session = undefined;
    session?.then(
      (open) => open.close(),
      () => {},
    );
  }

  /** A network that is gone says nothing: each request of the shared connection would run into its time, until the system gives up. */
  #watch(): void {
    const bytesRead = this.#socket?.bytesRead;
    if (bytesRead === this.#bytesRead) return;
    this.#bytesRead = bytesRead;
    this.#silentSinceMs = performance.now();
    this.#lookIn(this.#times.silenceMs);
  }

  #tryIfSilent(): void {
    this.#isLooking = false;
    // Bytes have come since: the next request looks again.
    if (this.#socket?.bytesRead !== this.#bytesRead) return;
    const { silenceMs, pingIntervalMs } = this.#times;
    const dueMs = Math.max(this.#silentSinceMs + silenceMs, this.#pingedAtMs + pingIntervalMs);
    const leftMs = dueMs - performance.now();
    if (leftMs > 0) this.#lookIn(leftMs);
    else void this.#session?.then((session) => this.#ping(session), ignore);
  }

  #lookIn(delayMs: number): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    setTimeout(() => this.#tryIfSilent(), delayMs).unref();
  }

  #ping(session: ClientHttp2Session): void {
    if (session.destroyed) return;
    this.#pingedAtMs = performance.now();
    const opened = this.#session;
    const timer = setTimeout(() => {
      if (opened !== undefined) this.#forget(opened);
      session.destroy(new UpstreamError("closed-before-response", "the connection answers no PING"));
    }, this.#dialTimeoutMs).unref();
    session.ping(() => clearTimeout(timer));
  }

  async #open(): Promise<ClientHttp2Session> {
    const { host, port } = this.endpoint;
    const socket = await dial(this.endpoint, { dialTimeoutMs: this.#dialTimeoutMs, allowHalfOpen: false });
    this.#socket = socket;
    this.#bytesRead = undefined;
    this.#pingedAtMs = Number.NEGATIVE_INFINITY;
    const session = connect(`http://${host.includes(":") ? `[${host}]` : host}:${port}`, {
      createConnection: () => socket,
      settings: { enablePush: false },
    });
    watchHttp2Session(session, socket);
    // A session ends for its streams by their own events; here it is only not used again.
    session.on("error", () => {});
    session.once("goaway", () => this.#forgetSession(session));
    session.once("close", () => this.#forgetSession(session));
    return new Promise((resolve, reject) => {
      // What is no HTTP/2 server says so before it acknowledges our settings.
      session.once("remoteSettings", () => resolve(session));
      session.once("close", () =>
        reject(new UpstreamError("malformed-response", "the backend does not speak HTTP/2")),
      );
      session.setTimeout(this.#dialTimeoutMs, () => session.destroy());
      session.once("remoteSettings", () => session.setTimeout(0));
    });
  }

  #forget(opening: Promise<ClientHttp2Session>): void {
    if (this.#session === opening) this.#session = undefined;
  }

  #forgetSession(session: ClientHttp2Session): void {
    const current = this.#session;
    void current?.then(
      (open) => {
        if (open === session && this.#session === current) this.#session = undefined;
      },
      () => {},
    );
  }
}

function ignore(): void {}
