import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import {
  type CommandLine,
  type CommandProcess,
  type CommandProcessHandler,
  environmentOf,
  WORKING_DIRECTORY,
} from "./command-process.ts";
import { spawnWithoutTerminals } from "./pseudo-terminal.ts";

/** A command without a terminal: separate stdout and stderr, and a stdin that can end. */
export class PipedProcess implements CommandProcess {
  readonly #child: ChildProcess;
  readonly #handler: CommandProcessHandler;
  readonly #maxStdinBufferBytes: number;
  readonly #endedOutputs = new Set<"stdout" | "stderr">();
  #failure: Error | undefined;

  /** Throws if the system refuses the arguments. */
  constructor(path: string, line: CommandLine, handler: CommandProcessHandler) {
    const { stdin, stdout, stderr } = line.requested;
    const stdioOf = (isWanted: boolean): "pipe" | "ignore" => (isWanted ? "pipe" : "ignore");
    this.#handler = handler;
    this.#maxStdinBufferBytes = line.maxStdinBufferBytes;
    this.#child = spawnWithoutTerminals([stdioOf(stdin), stdioOf(stdout), stdioOf(stderr)], (stdio) =>
      spawn(path, line.argv.slice(1), {
        argv0: line.argv[0],
        cwd: WORKING_DIRECTORY,
        env: environmentOf(line.hostname),
        detached: true,
        stdio,
      }),
    );
    this.#listen("stdout", this.#child.stdout);
    this.#listen("stderr", this.#child.stderr);
    this.#child.stdin?.on("drain", () => handler.onStdinDrain());
    this.#child.stdin?.on("close", () => handler.onStdinDrain());
    // EPIPE: the process closed its stdin. Further input is dropped, as its kernel would.
    this.#child.stdin?.on("error", () => {});
    this.#child.on("error", (error) => {
      this.#failure ??= error;
    });
    // "close", not "exit": a background child may still write, and its output belongs to the
    // session.
    this.#child.on("close", (code, signal) => this.#closed(code, signal));
  }

  writeStdin(part: Uint8Array): boolean {
    const stdin = this.#child.stdin;
    if (!stdin?.writable) return true;
    stdin.write(part);
    return stdin.writableLength <= this.#maxStdinBufferBytes;
  }

  endStdin(): void {
    this.#child.stdin?.end();
  }

  resize(): void {}

  pauseOutput(): void {
    this.#child.stdout?.pause();
    this.#child.stderr?.pause();
  }

  resumeOutput(): void {
    this.#child.stdout?.resume();
    this.#child.stderr?.resume();
  }

  /** containerd 2.1 kills an exec whose client is gone (1.6 and 1.7 let it run without a client). */
  hangUp(): void {
    this.#child.stdin?.end();
    signalGroup(this.#child, "SIGKILL");
    this.resumeOutput();
  }

  async kill(): Promise<void> {
    const isGone = this.#child.exitCode !== null || this.#child.signalCode !== null;
    signalGroup(this.#child, "SIGKILL");
    this.resumeOutput();
    if (!isGone && this.#child.pid !== undefined) await once(this.#child, "exit");
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
  }

  #listen(name: "stdout" | "stderr", stream: Readable | null): void {
    stream?.on("data", (part: Uint8Array) => this.#handler.onOutput(name, part));
    stream?.on("error", () => stream.destroy());
    stream?.once("end", () => this.#endOutput(name));
  }

  #endOutput(name: "stdout" | "stderr"): void {
    if (this.#endedOutputs.has(name)) return;
    this.#endedOutputs.add(name);
    this.#handler.onOutputEnd(name);
  }

  #closed(code: number | null, signal: NodeJS.Signals | null): void {
    // A stream that breaks emits no "end".
    this.#endOutput("stdout");
    this.#endOutput("stderr");
    if (this.#failure !== undefined) this.#handler.onExit({ type: "failed", message: this.#failure.message });
    else this.#handler.onExit({ type: "exited", code: exitCodeOf(code, signal) });
  }
}

/** Signals the process and its descendants; the process was started as leader of its own group. */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // ESRCH: all of these processes have ended.
  }
}

/** The exit code as a shell reports it. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  if (code !== null) return code;
  return 128 + (signal === null ? 0 : constants.signals[signal]);
}
