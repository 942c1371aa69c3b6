import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { sluiceCommand } from "./built-program.ts";
import { collect } from "./kubectl.ts";

export interface SluiceResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The compiled program as users run it. */
export class Sluice {
  readonly #environment: Readonly<Record<string, string>>;

  constructor(environment: Readonly<Record<string, string>>) {
    this.#environment = environment;
  }

  start(
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ): ChildProcessWithoutNullStreams {
    return spawn(...sluiceCommand(...args), {
      env: { PATH: process.env.PATH, ...this.#environment, ...environment },
    });
  }

  /** Killed, with exit code `null`, if it takes longer than `timeoutMs`: a minute. */
  async run(
    args: readonly string[],
    {
      input = "",
      environment = {},
      timeoutMs = 60_000,
    }: { input?: string | Uint8Array; environment?: Record<string, string>; timeoutMs?: number } = {},
  ): Promise<SluiceResult> {
    const child = this.start(args, environment);
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    const [exitCode] = await once(child, "close");
    clearTimeout(timer);
    return { exitCode, stdout: stdout(), stderr: stderr() };
  }
}
