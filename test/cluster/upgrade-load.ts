import { Agent, get } from "node:http";
import { get as getSecurely, Agent as SecureAgent } from "node:https";
import { PassThrough, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type CommandEnd, execPath, Target, WebSocketExecutor } from "../../packages/client/src/index.ts";
import { TOKENS } from "./kubernetes/credentials.ts";

const WEB = { namespace: "default", pod: "web", container: "main" };
const ECHO = ["sh", "-c", "while read line; do echo got:$line; done"];

/** A resumable session that sends a numbered line every 50 ms, and is sent each back. */
export class NumberedLines {
  readonly #stdin = new PassThrough();
  readonly #ended: Promise<CommandEnd>;
  readonly #timer: NodeJS.Timeout;
  #received = "";
  #sent = 0;
  resumptions = 0;
  /** What ended it before it was asked to end. */
  problem = "";

  constructor(url: string) {
    const target = new Target({
      url,
      proxy: "none",
      tls: { insecureSkipVerify: true },
      headers: () => [["Authorization", `Bearer ${TOKENS.dev.token}`]],
    });
    const stdout = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.#received += chunk;
        done();
      },
    });
    const note = (text: string): void => {
      if (text === "session resumed") this.resumptions += 1;
    };
    this.#ended = new WebSocketExecutor(target, execPath(WEB, ECHO), { resume: { note } }).stream({
      stdin: this.#stdin,
      stdout,
    });
    this.#ended.catch(({ message }: Error) => {
      this.problem = message;
    });
    this.#timer = setInterval(() => {
      this.#sent += 1;
      this.#stdin.write(`${this.#sent}\n`);
    }, 50);
  }

  get isEchoed(): boolean {
    return this.#received.includes("got:5\n");
  }

  /** How many lines came back in their order, of how many that were sent. Rejects with what ended the session before. */
  async finish(): Promise<{ readonly sent: number; readonly returned: number }> {
    clearInterval(this.#timer);
    this.#stdin.end();
    const { exitCode } = await this.#ended;
    const expected = Array.from({ length: this.#sent }, (_, index) => `got:${index + 1}\n`).join("");
    if (exitCode !== 0 || this.#received !== expected) {
      throw new Error(`exit ${exitCode}, ${this.#received.length} bytes of ${expected.length}`);
    }
    return { sent: this.#sent, returned: this.#received.split("\n").length - 1 };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stdin.destroy();
  }
}

/**
 * GETs of a path, one after the other with 20 ms between them, until it is stopped. As browsers and Go's client do, it sends again what met
 * a kept connection as the server closed it (RFC 9112, section 9.3.1).
 */
export class SteadyRequests {
  count = 0;
  repeated = 0;
  readonly failures: string[] = [];
  readonly #agent: Agent | SecureAgent;
  readonly #ended: Promise<void>;
  #isStopped = false;

  constructor(url: string, headers: Readonly<Record<string, string>>, keepAlive: boolean) {
    const isSecure = url.startsWith("https:");
    this.#agent = isSecure
      ? new SecureAgent({ keepAlive, rejectUnauthorized: false })
      : new Agent({ keepAlive });
    const send = isSecure ? getSecurely : get;
    const ask = (): Promise<string> =>
      new Promise((resolve) => {
        const request = send(url, { agent: this.#agent, headers, timeout: 20_000 }, (response) => {
          response.on("error", ({ message }) => resolve(message));
          response.on("end", () => resolve(String(response.statusCode)));
          response.resume();
        });
        request.on("timeout", () => request.destroy(new Error("no response within 20 s")));
        request.on("error", ({ code, message }: NodeJS.ErrnoException) => {
          const isRepeatable = request.reusedSocket && code === "ECONNRESET";
          if (isRepeatable) this.repeated += 1;
          resolve(isRepeatable ? ask() : message);
        });
      });
    this.#ended = (async () => {
      while (!this.#isStopped) {
        const outcome = await ask();
        this.count += 1;
        if (outcome !== "200") this.failures.push(outcome);
        await sleep(20);
      }
    })();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#ended;
    this.#agent.destroy();
  }
}
