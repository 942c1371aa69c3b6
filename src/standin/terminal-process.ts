import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync } from "node:fs";
import type { TerminalSize } from "../../protocols/remotecommand/index.ts";
import {
  type CommandLine,
  type CommandProcess,
  type CommandProcessHandler,
  environmentOf,
  WORKING_DIRECTORY,
} from "./command-process.ts";
import { exitCodeOf, signalGroup } from "./process-group.ts";
import { openPseudoTerminal, type PseudoTerminal } from "./pseudo-terminal.ts";

const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

// The leader of a new session gets the first terminal that it opens as its controlling terminal (Linux): with it come
// job control, ^C, and SIGHUP when the terminal goes away. Node can start a session but not do this.
const TAKE_TERMINAL = 'exec 0<>"$0" 1>&0 2>&0 && exec "$@"';

/** A command on a terminal: stderr is merged into stdout, and its input cannot end (as in containerd). */
export class TerminalProcess implements CommandProcess {
  readonly #child: ChildProcess;
  readonly #terminal: PseudoTerminal;
  readonly #handler: CommandProcessHandler;
  readonly #maxStdinBufferBytes: number;
  #exitCode: number | undefined;
  #failure: Error | undefined;
  #hasOutputEnded = false;

  /** Throws when the system has no terminal to give, or refuses the arguments. */
  constructor(path: string, line: CommandLine, handler: CommandProcessHandler) {
    this.#handler = handler;
    this.#maxStdinBufferBytes = line.maxStdinBufferBytes;
    this.#terminal = openPseudoTerminal(DEFAULT_COLUMNS, DEFAULT_ROWS);
    const { slaveDescriptor: slave, slavePath, master } = this.#terminal;
    try {
      this.#child = spawn("/bin/sh", ["-c", TAKE_TERMINAL, slavePath, path, ...line.argv.slice(1)], {
        cwd: WORKING_DIRECTORY,
        env: { ...environmentOf(line.environment), TERM: "xterm" },
        detached: true,
        stdio: [slave, slave, slave],
      });
    } catch (error) {
      master.destroy();
      throw error;
    } finally {
      closeSync(slave);
    }
    master.on("data", (part: Uint8Array) => handler.onOutput("stdout", part));
    master.on("drain", () => handler.onStdinDrain());
    // EIO is how a terminal says that its last process is gone.
    master.on("error", () => master.destroy());
    master.once("close", () => this.#outputEnded());
    this.#child.once("error", (error) => this.#ended(error, 0));
    this.#child.once("exit", (code, signal) => this.#ended(undefined, exitCodeOf(code, signal)));
  }

  writeStdin(part: Uint8Array): boolean {
    const { master } = this.#terminal;
    if (!master.writable) return true;
    master.write(part);
    return master.writableLength <= this.#maxStdinBufferBytes;
  }

  endStdin(): void {}

  /** containerd ignores a size with a zero in it. */
  resize({ width, height }: TerminalSize): void {
    if (width > 0 && height > 0) this.#terminal.resize(width, height);
  }

  pauseOutput(): void {
    this.#terminal.master.pause();
  }

  resumeOutput(): void {
    this.#terminal.master.resume();
  }

  /** The terminal goes away: the kernel sends SIGHUP to its foreground processes, and we to the leader's group. */
  hangUp(): void {
    this.#terminal.master.destroy();
    signalGroup(this.#child, "SIGHUP");
  }

  async kill(): Promise<void> {
    this.#terminal.master.destroy();
    const isGone = this.#child.exitCode !== null || this.#child.signalCode !== null;
    signalGroup(this.#child, "SIGKILL");
    if (!isGone && this.#child.pid !== undefined) await once(this.#child, "exit");
  }

  #outputEnded(): void {
    this.#hasOutputEnded = true;
    this.#handler.onStdinDrain();
    this.#handler.onOutputEnd("stdout");
    this.#reportExit();
  }

  #ended(failure: Error | undefined, exitCode: number): void {
    this.#failure = failure;
    this.#exitCode = exitCode;
    this.#reportExit();
  }

  #reportExit(): void {
    if (!this.#hasOutputEnded || this.#exitCode === undefined) return;
    if (this.#failure !== undefined) this.#handler.onExit({ type: "failed", message: this.#failure.message });
    else this.#handler.onExit({ type: "exited", code: this.#exitCode });
  }
}
