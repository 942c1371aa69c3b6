import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type IPty, spawn as spawnTerminal } from "@lydell/node-pty";
import { sluiceCommand } from "./built-program.ts";
import { collect, type KubectlResult, type RunOptions } from "./kubectl.ts";
import type { CommandRunner } from "./kubectl-checks.ts";

/** Our own commands in place of kubectl's. */
export class SluiceRunner implements CommandRunner {
  readonly version = "sluice";
  readonly folder = mkdtempSync(path.join(tmpdir(), "sluice-runner-"));
  readonly #environment: Record<string, string>;

  constructor(kubeconfig: string) {
    this.#environment = {
      PATH: process.env.PATH ?? "",
      HOME: this.folder,
      KUBECONFIG: kubeconfig,
      TERM: "xterm",
    };
  }

  start(
    arguments_: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): ChildProcessWithoutNullStreams {
    return spawn(...sluiceCommand(...arguments_), {
      env: { ...this.#environment, ...env },
    });
  }

  async run(arguments_: readonly string[], options: RunOptions = {}): Promise<KubectlResult> {
    const child = this.start(arguments_, options.env);
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
    const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 60_000);
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
    const [exitCode] = await once(child, "close");
    clearTimeout(timer);
    return { exitCode, stdout: stdout(), stderr: stderr() };
  }

  startInTerminal(
    arguments_: readonly string[],
    size: { columns: number; rows: number },
    name = "xterm",
  ): IPty {
    return spawnTerminal(...sluiceCommand(...arguments_), {
      name,
      cols: size.columns,
      rows: size.rows,
      env: { ...this.#environment, TERM: name },
      cwd: this.folder,
    });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
