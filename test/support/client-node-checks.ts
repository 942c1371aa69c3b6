import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { Attach, Cp, Exec, KubeConfig, PortForward, type V1Status } from "@kubernetes/client-node";
import { expect } from "vitest";
import { type ClientOptions, WebSocket } from "ws";
import { eventually } from "./eventually.ts";
import type { CheckedPod } from "./kubectl-checks.ts";

/** The client sends each input of this size as one WebSocket message. */
const INPUT_BYTES = 32 * 1024;

/**
 * The official JavaScript client, which only speaks WebSocket: v5 for commands, or restricted to
 * v4, like its older releases.
 */
export class NodeClient {
  readonly #exec: Exec;
  readonly #attach: Attach;
  readonly #copy: Cp;
  readonly #portForward: PortForward;
  readonly #endsInput: boolean;

  constructor(kubeconfig: string, subprotocol?: "v4.channel.k8s.io") {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    this.#exec = new Exec(config);
    const { handler } = this.#exec;
    if (subprotocol !== undefined) {
      const socketFactory = (url: string, _protocols: string[], options: ClientOptions) =>
        new WebSocket(url, subprotocol, options);
      Object.assign(handler, { socketFactory });
    }
    this.#attach = new Attach(config, handler);
    this.#copy = new Cp(config, this.#exec);
    this.#portForward = new PortForward(config, true, handler);
    // v4 has no way to.
    this.#endsInput = subprotocol === undefined;
  }

  /**
   * Checks that input reaches the command, that its two outputs stay separate, and that its exit
   * code comes back.
   */
  async checkExec(pod: CheckedPod): Promise<void> {
    const input = randomBytes(96 * 1024).toString("base64");
    const read = this.#endsInput ? "cat" : `head -c ${input.length}`;
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const [heard, errors] = [text(stdout), text(stderr)];
    const script = ["sh", "-c", `${read}; echo to-stderr >&2; exit 7`];
    const ended = this.#statusOf(pod, script, stdout, stderr, stdin);
    stdin.write(input);
    // Restricted to v4, the client would close the whole session.
    if (this.#endsInput) stdin.end();
    const status = await ended;
    stdout.end();
    stderr.end();
    expect(status).toMatchObject({ status: "Failure", reason: "NonZeroExitCode" });
    expect(status.details?.causes).toEqual([{ reason: "ExitCode", message: "7" }]);
    expect((await heard) === input, `${(await heard).length} of ${input.length} characters came back`).toBe(
      true,
    );
    expect(await errors).toBe("to-stderr\n");
  }

  /** Checks that a terminal has the size of the client's own and follows its changes. */
  async checkTerminal(pod: CheckedPod): Promise<void> {
    const stdin = new PassThrough();
    const stdout = Object.assign(new PassThrough(), { rows: 33, columns: 91 });
    let screen = "";
    stdout.on("data", (part) => {
      screen += part;
    });
    const ended = this.#statusOf(pod, ["sh"], stdout, null, stdin, true);
    const untilSizeIs = (size: string) =>
      eventually(
        () => `stty says ${size}; the screen shows ${JSON.stringify(screen)}`,
        () => {
          if (screen.includes(size)) return true;
          stdin.write("stty size\r");
          return false;
        },
        { timeoutMs: 20_000, intervalMs: 150 },
      );
    await untilSizeIs("33 91");
    Object.assign(stdout, { rows: 44, columns: 122 }).emit("resize");
    await untilSizeIs("44 122");
    stdin.write("exit 3\r");
    expect((await ended).details?.causes).toEqual([{ reason: "ExitCode", message: "3" }]);
  }

  /** Checks that input reaches the running process, and that its answer comes back. */
  async checkAttach(pod: CheckedPod): Promise<void> {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    let heard = "";
    stdout.on("data", (part) => {
      heard += part;
    });
    const socket = await this.#attach.attach("default", pod.name, pod.container, stdout, null, stdin, false);
    const line = `hello ${randomBytes(8).toString("hex")}`;
    stdin.write(`${line}\n`);
    await eventually("the attached process answers", () => heard.includes(line), { timeoutMs: 20_000 });
    const closed = once(socket as never, "close");
    socket.close();
    await closed;
  }

  /**
   * Copies a folder in with the client's `cp`, and a file of it back. How the client packs
   * downloads is not tested here.
   */
  async checkCopy(pod: CheckedPod, sizeBytes: number): Promise<void> {
    const local = mkdtempSync(path.join(tmpdir(), "sluice-node-client-"));
    const remote = mkdtempSync(path.join(pod.folder, "node-client-"));
    try {
      const sent = randomBytes(sizeBytes);
      const arrived = path.join(remote, "sub", "file");
      if (this.#endsInput) await this.#copyFolder(pod, local, remote, sent);
      else await this.#copyFile(pod, arrived, sent);
      const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
      const stdout = new PassThrough();
      const returned = buffer(stdout);
      const status = await this.#statusOf(pod, ["cat", arrived], stdout, null, null);
      stdout.end();
      expect(status.status).toBe("Success");
      expect(sha256(await returned)).toBe(sha256(sent));
    } finally {
      rmSync(local, { recursive: true, force: true });
      rmSync(remote, { recursive: true, force: true });
    }
  }

  async #copyFolder(pod: CheckedPod, local: string, remote: string, sent: Buffer): Promise<void> {
    mkdirSync(path.join(local, "sub"));
    writeFileSync(path.join(local, "sub", "file"), sent);
    await this.#copy.cpToPod("default", pod.name, pod.container, local, remote);
    const arrived = path.join(remote, "sub", "file");
    // The call resolves when the session begins; nothing reports its end.
    const isWhole = () => sizeOf(arrived) === sent.byteLength && readFileSync(arrived).equals(sent);
    await eventually("the copy is whole", isWhole, { timeoutMs: 120_000 });
  }

  /**
   * Restricted to v4, the client closes the session at the end of its input, whatever has arrived
   * by then, so the command must know the size.
   */
  async #copyFile(pod: CheckedPod, arrived: string, sent: Buffer): Promise<void> {
    const stdin = new PassThrough();
    const script = `mkdir -p ${path.dirname(arrived)} && head -c ${sent.byteLength} > ${arrived}`;
    const ended = this.#statusOf(pod, ["sh", "-c", script], null, null, stdin);
    for (let at = 0; at < sent.byteLength; at += INPUT_BYTES)
      stdin.write(sent.subarray(at, at + INPUT_BYTES));
    expect((await ended).status).toBe("Success");
  }

  /** Checks requests over one session each, which is how this client forwards. */
  async checkPortForward(pod: CheckedPod, { requests = 40, concurrency = 10 } = {}): Promise<void> {
    const pages: string[] = [];
    let started = 0;
    const worker = async (): Promise<void> => {
      while (started++ < requests) pages.push(await this.#fetchOnce(pod));
    };
    await Promise.all(Array.from({ length: concurrency }, worker));
    expect(pages).toHaveLength(requests);
    for (const page of pages) expect(page).toMatch(/^HTTP\/1\.[01] 200 /);
  }

  async #fetchOnce(pod: CheckedPod): Promise<string> {
    const [output, error, input] = [new PassThrough(), new PassThrough(), new PassThrough()];
    let problem = "";
    error.on("data", (part) => {
      problem += part;
    });
    const opened = this.#portForward.portForward("default", pod.name, [pod.httpPort], output, error, input);
    const socket = (await opened) as WebSocket;
    const closed = once(socket, "close");
    input.write("GET / HTTP/1.0\r\nConnection: close\r\n\r\n");
    await closed;
    output.end();
    expect(problem).toBe("");
    return await text(output);
  }

  #statusOf(
    pod: CheckedPod,
    command: string[],
    stdout: PassThrough | null,
    stderr: PassThrough | null,
    stdin: PassThrough | null,
    tty = false,
  ): Promise<V1Status> {
    return new Promise((resolve, reject) => {
      this.#exec
        .exec("default", pod.name, pod.container, command, stdout, stderr, stdin, tty, resolve)
        .catch(reject);
    });
  }
}

function sizeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}
