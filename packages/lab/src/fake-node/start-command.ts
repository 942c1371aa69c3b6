import { randomBytes } from "node:crypto";
import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";
import {
  type CommandLine,
  type CommandProcess,
  type CommandProcessHandler,
  environmentOf,
} from "./command-process.ts";
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
