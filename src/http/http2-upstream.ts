import { type ClientHttp2Session, connect } from "node:http2";
import { DEFAULT_DIAL_TIMEOUT_MS, dial, type UpstreamEndpoint } from "../net/dial.ts";
import { UpstreamError } from "../net/upstream-error.ts";

/** One HTTP/2 upstream spoken to with prior knowledge (h2c), over one connection that all its exchanges share. */
export class Http2Upstream {
  readonly endpoint: UpstreamEndpoint;
  readonly #dialTimeoutMs: number;
  #session: Promise<ClientHttp2Session> | undefined;

  constructor(endpoint: UpstreamEndpoint, dialTimeoutMs = DEFAULT_DIAL_TIMEOUT_MS) {
    this.endpoint = endpoint;
    this.#dialTimeoutMs = dialTimeoutMs;
  }

  /** A session that takes new streams. Throws UpstreamError "dial-failed". */
  session(): Promise<ClientHttp2Session> {
    if (this.#session === undefined) {
      const opening = this.#open();
      this.#session = opening;
      // The next exchange dials anew.
      opening.catch(() => this.#forget(opening));
    }
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

  async #open(): Promise<ClientHttp2Session> {
    const { host, port } = this.endpoint;
    const socket = await dial(this.endpoint, { dialTimeoutMs: this.#dialTimeoutMs, allowHalfOpen: false });
    const session = connect(`http://${host.includes(":") ? `[${host}]` : host}:${port}`, {
      createConnection: () => socket,
      settings: { enablePush: false },
    });
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
