import { PassThrough, Writable } from "node:stream";
import { expect } from "vitest";
import { type CommandEnd, execPath, Target, WebSocketExecutor } from "../../packages/client/src/index.ts";
import { TESTER_TOKEN } from "./gateway-files.ts";

const POD = { namespace: "default", pod: "web", container: "main" };

/**
 * An interactive shell with a terminal, whose session may be resumed, and a simulated user who
 * types.
 */
export class ResumedShell {
  readonly ended: Promise<CommandEnd>;
  readonly notes: string[] = [];
  readonly #keyboard = new PassThrough();
  #screen = "";

  /** Accepts any certificate of the server. */
  constructor(url: string) {
    const target = new Target({
      url,
      proxy: "none",
      tls: { insecureSkipVerify: true },
      headers: () => [["Authorization", `Bearer ${TESTER_TOKEN}`]],
    });
    const stdout = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.#screen += chunk.toString();
        done();
      },
    });
    const resume = { note: (text: string) => void this.notes.push(text) };
    const executor = new WebSocketExecutor(target, execPath(POD, ["sh"]), { resume });
    this.ended = executor.stream({ stdin: this.#keyboard, stdout, tty: true });
    this.ended.catch(() => {});
  }

  /** Types a line, and waits until the screen shows the text. */
  async type(line: string, shown: string): Promise<void> {
    this.#keyboard.write(`${line}\n`);
    await expect.poll(() => this.#screen, { timeout: 20_000 }).toContain(shown);
  }
}
