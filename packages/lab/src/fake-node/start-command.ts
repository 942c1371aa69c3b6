import { randomBytes } from "node:crypto";
import {
  type CommandLine,
  type CommandProcess,
  type CommandProcessHandler,
  environmentOf,
} from "./command-process.ts";
import { findExecutable } from "./find-executable.ts";
import { PipedProcess } from "./piped-process.ts";
import { TerminalProcess } from "./terminal-process.ts";

/** The command could not start. The message is the runtime's, as in the Status. */
export class CommandStartError extends Error {
  override readonly name = "CommandStartError";
}

/** Throws CommandStartError. Events never arrive during the call. */
export function startCommand(line: CommandLine, handler: CommandProcessHandler): CommandProcess {
  const found = findExecutable(line.argv[0] ?? "", environmentOf(line.environment).PATH ?? "");
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
