import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { type CopyContext, noProgress } from "../../packages/client/src/copy/copy-context.ts";
import type { RemoteShell } from "../../packages/client/src/copy/remote-shell.ts";
import type { OutputStream } from "../../packages/client/src/sessions/output-sink.ts";
import { SessionError } from "../../packages/client/src/sessions/session-error.ts";
import { printWarning } from "../../src/cli/client/report-error.ts";
import { collect } from "./kubectl.ts";

/** What a script reads and writes, and how it ended. */
export type ShellStreams = NonNullable<Parameters<RemoteShell["script"]>[2]>;
export type ShellResult = Awaited<ReturnType<RemoteShell["script"]>>;

export interface LocalShellOptions {
  /** The PATH for programs; by default this process' own. */
  readonly path?: string;
  /**
   * The bytes of input of each command in turn after which its connection is lost. Later commands
   * are not cut.
   */
  readonly cutsAfterBytes?: readonly number[];
}

/**
 * A container's shell that runs on this machine: scripts of `sluice cp` run unchanged, and lose
 * their connections on request.
 */
export class LocalShell {
  /** How many bytes each command with input has read. */
  readonly sentBytes: number[] = [];
  readonly #path: string;
  readonly #cuts: number[];

  constructor({ path = process.env.PATH ?? "", cutsAfterBytes = [] }: LocalShellOptions = {}) {
    this.#path = path;
    this.#cuts = [...cutsAfterBytes];
  }

  async script(
    script: string,
    args: readonly string[],
    { stdin, stdout, encoding = "utf8" }: ShellStreams = {},
  ): Promise<ShellResult> {
    const child = spawn("/bin/sh", ["-c", script, "sh", ...args], { env: { PATH: this.#path } });
    const taken = stdout === undefined ? undefined : pass(child.stdout, stdout);
    const printed: Buffer[] = [];
    if (stdout === undefined) child.stdout.on("data", (chunk: Buffer) => printed.push(chunk));
    const err = collect(child.stderr);
    const ended = once(child, "close");
    child.stdin.on("error", () => {});
    const wasCut = stdin !== undefined && (await this.#feed(child.stdin, stdin as AsyncIterable<Buffer>));
    child.stdin.end();
    const [exitCode] = await ended;
    await taken;
    if (wasCut) throw new SessionError("connection-lost", "cut by the test");
    return { exitCode: exitCode ?? 1, stdout: Buffer.concat(printed).toString(encoding), stderr: err() };
  }

  async cleanUp(script: string, args: readonly string[]): Promise<void> {
    await this.script(script, args).catch(() => {});
  }

  async mustRun(script: string, args: readonly string[], streams: ShellStreams = {}): Promise<string> {
    const { exitCode, stdout, stderr } = await this.script(script, args, streams);
    if (exitCode !== 0) throw new Error(`exit code ${exitCode}: ${stderr}`);
    return stdout;
  }

  /** Options for a copy that needs no terminal. */
  options(more: Partial<CopyContext> = {}): CopyContext {
    return {
      shell: this as unknown as RemoteShell,
      note: () => {},
      retries: 2,
      verifies: true,
      preservesMode: true,
      startProgress: noProgress,
      warn: printWarning,
      ...more,
    };
  }

  async #feed(input: NodeJS.WritableStream, source: AsyncIterable<Buffer>): Promise<boolean> {
    const limit = this.#cuts.shift() ?? Number.POSITIVE_INFINITY;
    let bytes = 0;
    try {
      for await (const piece of source) {
        const part = piece.subarray(0, limit - bytes);
        bytes += part.byteLength;
        await new Promise<void>((resolve) => input.write(part, () => resolve()));
        if (bytes >= limit) return true;
      }
      return false;
    } finally {
      this.sentBytes.push(bytes);
    }
  }
}

async function pass(output: Readable, taker: OutputStream): Promise<void> {
  for await (const part of output) {
    if ("takePart" in taker) await taker.takePart(part as Buffer);
    else if ("write" in taker && !taker.write(part)) await once(taker, "drain");
  }
}
