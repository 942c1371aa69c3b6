import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type IPty, spawn as spawnTerminal } from "@lydell/node-pty";
import type { Kubectl } from "./real-parts-finder.ts";

export interface KubectlResult {
  /** `null` if the process was killed. */
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  input?: string | Uint8Array;
  /** The time limit. Past it the process is killed, and the result says so. */
  timeoutMs?: number;
  env?: Readonly<Record<string, string>>;
}

/**
 * One kubectl with its own home and discovery cache, so that versions and runs do not share any.
 */
export class KubectlRunner {
  readonly version: string;
  /** A folder for files that kubectl reads or writes in a test. */
  readonly folder: string;
  readonly #program: string;
  readonly #target: readonly string[];

  /**
   * `server` is a kubeconfig, or the URL of a server that requires no credentials. Absent: the
   * server that the arguments and `env` name.
   */
  constructor(kubectl: Kubectl, server?: { kubeconfig: string } | { url: string }) {
    this.version = kubectl.version;
    this.folder = mkdtempSync(path.join(tmpdir(), `sluice-kubectl-${kubectl.version}-`));
    this.#program = kubectl.path;
    const cache = ["--cache-dir", path.join(this.folder, "cache")];
    if (server === undefined) this.#target = [];
    else
      this.#target = [
        ...cache,
        ...("kubeconfig" in server ? ["--kubeconfig", server.kubeconfig] : ["--server", server.url]),
      ];
  }

  start(
    arguments_: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): ChildProcessWithoutNullStreams {
    return spawn(this.#program, this.#arguments(arguments_), { env: { ...this.#environment(), ...env } });
  }

  async run(arguments_: readonly string[], options: RunOptions = {}): Promise<KubectlResult> {
    const child = this.start(arguments_, options.env);
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 60_000);
    child.stdin.on("error", () => {}); // kubectl may end before it has read everything
    child.stdin.end(options.input ?? "");
    const [exitCode] = await once(child, "close");
    clearTimeout(timer);
    const killed = exitCode === null ? `\n(killed after ${options.timeoutMs ?? 60_000} ms)` : "";
    return { exitCode, stdout: stdout(), stderr: stderr() + killed };
  }

  /** Runs in a terminal, as a person would. */
  startInTerminal(arguments_: readonly string[], size: { columns: number; rows: number }): IPty {
    return spawnTerminal(this.#program, [...this.#arguments(arguments_)], {
      name: "xterm",
      cols: size.columns,
      rows: size.rows,
      env: this.#environment(),
      cwd: this.folder,
    });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #arguments(arguments_: readonly string[]): string[] {
    return [...this.#target, ...arguments_];
  }

  #environment(): Record<string, string> {
    const kubeconfig = path.join(this.folder, "no-kubeconfig");
    return { PATH: process.env.PATH ?? "", HOME: this.folder, KUBECONFIG: kubeconfig, TERM: "xterm" };
  }
}

/** Collects a stream's text. The returned function returns the text so far. */
export function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString();
}
