import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { accessSync, closeSync, constants, statSync } from "node:fs";
import { join } from "node:path";
import type { TerminalSize } from "@sluice/protocols/remotecommand";
import {
  type CommandLine,
  type CommandProcess,
  type CommandProcessHandler,
  environmentOf,
  WORKING_DIRECTORY,
} from "./command-process.ts";
import { exitCodeOf, PipedProcess, signalGroup } from "./piped-process.ts";
import { openPseudoTerminal, type PseudoTerminal, spawnWithoutTerminals } from "./pseudo-terminal.ts";

/** The command could not start. The message is the runtime's, as in the Status. */
export class CommandStartError extends Error {
  override readonly name = "CommandStartError";
}

/** Throws CommandStartError. Events never arrive during the call. */
export function startCommand(line: CommandLine, handler: CommandProcessHandler): CommandProcess {
  const found = findExecutable(line.argv[0] ?? "", environmentOf(line.hostname).PATH ?? "");
  if (!found.ok) throw new CommandStartError(runtimeMessage(found.reason));
  try {
    return line.requested.tty
      ? new TerminalProcess(found.path, line, handler)
      : new PipedProcess(found.path, line, handler);
  } catch (error) {
    throw new CommandStartError(runtimeMessage(error instanceof Error ? error.message : String(error)));
  }
}

/** Wraps the reason in containerd's and runc's words, which also contain a random exec id. */
function runtimeMessage(reason: string): string {
  const id = randomBytes(32).toString("hex");
  return `failed to exec in container: failed to start exec "${id}": OCI runtime exec failed: exec failed: unable to start container process: ${reason}`;
}

type FoundExecutable =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly reason: string };

/** Finds the program for `name`; explains a failure in runc's words, because spawn reports no reason. */
function findExecutable(name: string, path: string): FoundExecutable {
  if (name === "") return { ok: false, reason: "exec: no command" };
  const quoted = `exec: ${JSON.stringify(name)}`;
  if (name.includes("/")) {
    const problem = problemOf(name);
    return problem === undefined ? { ok: true, path: name } : { ok: false, reason: `${quoted}: ${problem}` };
  }
  for (const directory of path.split(":")) {
    const candidate = join(directory, name);
    if (directory !== "" && problemOf(candidate) === undefined) return { ok: true, path: candidate };
  }
  return { ok: false, reason: `${quoted}: executable file not found in $PATH` };
}

function problemOf(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) return "is a directory";
  } catch {
    return `stat ${path}: no such file or directory`;
  }
  try {
    accessSync(path, constants.X_OK);
    return undefined;
  } catch {
    return "permission denied";
  }
}

const DEFAULT_SIZE: TerminalSize = { width: 80, height: 24 };

/**
 * The session leader makes the terminal its controlling one, with job control, which Node.js cannot. It exits
 * only when descriptor 3 ends, because its exit makes the kernel drop unread output.
 */
const LEADER_SCRIPT = [
  'exec 0<>"$0" 1>&0 2>/dev/null',
  "trap : INT QUIT",
  '"$@" 2>&1 3<&-',
  "code=$?",
  "trap '' HUP",
  "echo over >&3",
  "read _ <&3",
  "exit $code",
].join("\n");
const HOLD_DESCRIPTOR = 3;

/** A command on a terminal: stderr is merged into stdout, and its input cannot end (as in containerd). */
class TerminalProcess implements CommandProcess {
  readonly #child: ChildProcess;
  readonly #terminal: PseudoTerminal;
  readonly #handler: CommandProcessHandler;
  readonly #maxStdinBufferBytes: number;
  #exitCode: number | undefined;
  #failure: Error | undefined;
  #hasOutputEnded = false;

  /** Throws if the system has no terminal left, or refuses the arguments. */
  constructor(path: string, line: CommandLine, handler: CommandProcessHandler) {
    this.#handler = handler;
    this.#maxStdinBufferBytes = line.maxStdinBufferBytes;
    // A started command may ask for the size before this process runs again.
    const { width, height } = line.size !== undefined && isTaken(line.size) ? line.size : DEFAULT_SIZE;
    this.#terminal = openPseudoTerminal(width, height);
    const { slaveDescriptor: slave, slavePath, master } = this.#terminal;
    try {
      this.#child = spawnWithoutTerminals([slave, slave, slave, "pipe"], (stdio) =>
        spawn("/bin/sh", ["-c", LEADER_SCRIPT, slavePath, path, ...line.argv.slice(1)], {
          cwd: WORKING_DIRECTORY,
          env: { ...environmentOf(line.hostname), TERM: "xterm" },
          detached: true,
          stdio,
        }),
      );
    } catch (error) {
      master.destroy();
      throw error;
    } finally {
      closeSync(slave);
    }
    master.on("data", (part: Uint8Array) => handler.onOutput("stdout", part));
    master.on("drain", () => handler.onStdinDrain());
    // EIO: the leader was killed.
    master.on("error", () => master.destroy());
    master.once("close", () => this.#outputEnded());
    const hold = this.#child.stdio[HOLD_DESCRIPTOR];
    hold?.on("error", () => {});
    hold?.once("data", () => this.#takeRest());
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

  resize(size: TerminalSize): void {
    if (isTaken(size)) this.#terminal.resize(size.width, size.height);
  }

  pauseOutput(): void {
    this.#terminal.master.pause();
  }

  resumeOutput(): void {
    this.#terminal.master.resume();
  }

  /**
   * Closes the terminal: the kernel sends SIGHUP to its foreground processes, and we send it to the
   * leader's group.
   */
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

  /**
   * The command has ended: reads the little output that is left now, even if the client is slow.
   */
  #takeRest(): void {
    const { master } = this.#terminal;
    if (master.destroyed) return;
    master.removeAllListeners("data");
    for (let part: unknown = master.read(); part instanceof Uint8Array; part = master.read()) {
      this.#handler.onOutput("stdout", part);
    }
    for (const part of this.#terminal.readAvailable()) this.#handler.onOutput("stdout", part);
    master.destroy();
  }

  #outputEnded(): void {
    this.#hasOutputEnded = true;
    this.#child.stdio[HOLD_DESCRIPTOR]?.destroy();
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

/** containerd ignores a size that contains a zero. */
function isTaken({ width, height }: TerminalSize): boolean {
  return width > 0 && height > 0;
}
