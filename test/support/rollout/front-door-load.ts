import { Agent, get, type IncomingMessage } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import { text } from "node:stream/consumers";
import { ask, connectHttp2 } from "../http2-client.ts";

/** RFC 9113: the server has not processed the stream, so it may be sent again. */
const REFUSED_STREAM = 7;
const HTTP2_CONNECTIONS = 4;

/**
 * Sends this many GETs a second, whether earlier ones are answered or not: half over kept HTTP/1.1
 * connections, half over HTTP/2.
 */
export class FrontDoorLoad {
  sent = 0;
  answered = 0;
  /**
   * Requests that were sent again by the rules of HTTP: refused HTTP/2 streams, and kept
   * connections that were closed meanwhile.
   */
  repeated = 0;
  goaways = 0;
  readonly #startedMs = performance.now();
  #stoppedMs = 0;
  readonly failures: string[] = [];
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8 });
  readonly #sessions: (Promise<ClientHttp2Session> | undefined)[] = [];
  readonly #open = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;

  /** Catches up if a timer is late. `expected` is the body of every answer. */
  constructor(port: number, perSecond: number, expected: string) {
    this.#port = port;
    this.#timer = setInterval(() => {
      const due = ((performance.now() - this.#startedMs) * perSecond) / 1_000;
      while (this.sent < due) this.#send(expected);
    }, 1_000 / perSecond);
  }

  #send(expected: string): void {
    const index = this.sent;
    this.sent += 1;
    const asked = index % 2 === 0 ? this.#overHttp1(index) : this.#overHttp2(index);
    const done = asked.then(
      (body) => {
        if (body === expected) this.answered += 1;
        else this.failures.push(`request ${index}: ${body.slice(0, 200)}`);
      },
      (error: Error) =>
        void this.failures.push(`request ${index} at ${new Date().toISOString()}: ${error.message}`),
    );
    this.#open.add(done);
    void done.finally(() => this.#open.delete(done));
  }

  /** The rate that was reached, once the load has stopped. */
  get perSecond(): number {
    return (1_000 * this.sent) / (this.#stoppedMs - this.#startedMs);
  }

  /** Resolves when all requests are answered. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stoppedMs = performance.now();
    await Promise.all(this.#open);
    this.#agent.destroy();
    for (const session of this.#sessions) (await session)?.destroy();
  }

  async #overHttp1(index: number, isRepeated = false): Promise<string> {
    let isReused = false;
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const request = get(
          { host: "127.0.0.1", port: this.#port, agent: this.#agent, path: `/${index}` },
          resolve,
        );
        request.once("error", (error) => {
          isReused = request.reusedSocket;
          reject(error);
        });
      });
      const body = await text(response);
      return response.statusCode === 200 ? body : `${response.statusCode} ${body}`;
    } catch (error) {
      if (!isReused || isRepeated) throw error;
      this.repeated += 1;
      return this.#overHttp1(index, true);
    }
  }

  async #overHttp2(index: number, isRepeated = false): Promise<string> {
    const session = await this.#session(Math.floor(index / 2) % HTTP2_CONNECTIONS);
    const { status, body, rstCode } = await ask(session, `/${index}`);
    if (status === 200 && rstCode === 0) return body;
    if (rstCode !== REFUSED_STREAM || isRepeated) return `${status} RST_STREAM ${rstCode} ${body}`;
    this.repeated += 1;
    return this.#overHttp2(index, true);
  }

  /** After a GOAWAY the next request opens another connection. */
  #session(at: number): Promise<ClientHttp2Session> {
    const known = this.#sessions[at];
    if (known !== undefined) return known;
    const opening = connectHttp2(`http://127.0.0.1:${this.#port}`);
    const forget = (): void => {
      if (this.#sessions[at] === opening) this.#sessions[at] = undefined;
    };
    this.#sessions[at] = opening;
    opening.then((session) => {
      session.once("goaway", () => {
        this.goaways += 1;
        forget();
      });
      session.once("close", forget);
    }, forget);
    return opening;
  }
}
