// src/cli: commands: a table of flags for each (commands/), its program, parser, help

import * as nodeModule from "node:module";
import { homedir } from "node:os";
import path from "node:path";
import { ConfigurationError, withoutUserinfo } from "@sluice/client/internal/config/configuration-error";
import { nearestName } from "@sluice/client/internal/config/nearest-name";
import { NotInstalledError } from "@sluice/client/internal/config/optional-package";
import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { isSingleBinary, SLUICE_VERSION } from "@sluice/client/internal/config/version";
import { CredentialsError } from "@sluice/client/internal/kubernetes/credentials-error";
import { maskControls } from "../observability/mask-controls.ts";
import { EXIT_BROKEN_PIPE, UsageError } from "./command.ts";
import { COMMANDS, type ListedCommand } from "./command-list.ts";
import { parseFlags } from "./parse-flags.ts";

/** These commands are servers, which continue to run after the reader of their output has left. */
const SERVING: readonly string[] = ["demo", "serve", "agent", "fake-node"];
/** Commands whose sessions report a broken pipe, and end the remote command. */
const OWN_SESSIONS: readonly string[] = ["exec", "attach"];

/** The name the user typed: kubectl runs its plugin under its own name. */
const PROGRAM = path.basename(process.argv[1] ?? "") === "kubectl-sluice" ? "kubectl sluice" : "sluice";

const HELP_WORDS: readonly (string | undefined)[] = ["help", "--help", "-h"];

/** Runs `sluice ARGS` and resolves to the exit code. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  let name = "";
  endWithReader("");
  try {
    if (args[0] === "__complete") {
      const { answerShell } = await import("./completion/complete.ts");
      return await answerShell(args.slice(1));
    }
    if (isSingleBinary && args[0] === "worker-main") {
      await import("../app/runtime/worker-main.ts");
      return 0;
    }
    const isForHelp = HELP_WORDS.includes(args[0]);
    if (args.length === 0 || (isForHelp && args.length === 1)) {
      const { asTyped, helpWidth, programHelp } = await import("./help-text.ts");
      process.stdout.write(asTyped(PROGRAM, programHelp(COMMANDS, helpWidth(process.stdout.columns))));
      return args.length === 0 ? 2 : 0;
    }
    if (args[0] === "version" || args[0] === "--version") {
      if (args.length > 1) throw new UsageError(`unexpected argument ${JSON.stringify(args[1])}`);
      process.stdout.write(`sluice ${SLUICE_VERSION}, Node ${process.version}\n`);
      return 0;
    }
    const words = isForHelp ? [...args.slice(1), "--help"] : args;
    const at = words[0]?.startsWith("-") ? await commandIndex(words) : 0;
    const listed = commandNamed(words[at]);
    name = ` ${listed.name}`;
    return await runCommand(listed.name, [...words.slice(0, at), ...words.slice(at + 1)]);
  } catch (error) {
    if (error instanceof UsageError) {
      const lines = error.showsUsage ? await usageOf(name.trim()) : "";
      process.stderr.write(
        `${PROGRAM}${name}: ${maskControls(withoutUserinfo(error.message))}\n${lines}See '${PROGRAM}${name} --help' for usage.\n`,
      );
      return 2;
    }
    if (error instanceof ConfigurationError) {
      process.stderr.write(`${PROGRAM}${name}: ${maskControls(error.message)}\n`);
      return 2;
    }
    if (!isSystemError(error) && !isForTheUser(error)) throw error;
    process.stderr.write(`${PROGRAM}${name}: ${maskControls(systemErrorText(error))}\n`);
    // Exits as after an uncaught error: nothing else stops what the command started.
    process.exit(1);
  }
}

/** Runs one command, or prints its help. Throws UsageError, and any error of the command. */
export async function runCommand(name: string, args: readonly string[]): Promise<number> {
  const { group, load, loadProgram } = commandNamed(name);
  // Must come before the command's modules: the cache skips modules that are already loaded.
  if (group === "Client") enableCompileCache();
  const { command } = await load();
  endWithReader(name);
  const invocation = parseFlags(command, args);
  if (invocation !== "help") return await (await loadProgram()).run(invocation);
  const { asTyped, commandHelp, helpWidth } = await import("./help-text.ts");
  process.stdout.write(asTyped(PROGRAM, commandHelp(name, command, helpWidth(process.stdout.columns))));
  return 0;
}

/** Every way to call the command, as help prints it. */
async function usageOf(name: string): Promise<string> {
  const { command } = await commandNamed(name).load();
  return `Usage:\n${command.usage.map((line) => `  ${PROGRAM} ${name} ${line}\n`).join("")}`;
}

/**
 * Exists since Node 22.8. The folder belongs to the user: in the system's temporary folder others
 * could plant code.
 */
function enableCompileCache(): void {
  const cache = process.env.XDG_CACHE_HOME ?? path.join(homedir(), ".cache");
  const enable = (nodeModule as { enableCompileCache?: (folder: string) => unknown }).enableCompileCache;
  enable?.(path.join(cache, "sluice", "compiled"));
}

/** The index of the command's name, after kubectl's global flags. Throws UsageError. */
async function commandIndex(args: readonly string[]): Promise<number> {
  const { countLeadingFlags } = await import("./commands/connection-flags.ts");
  return countLeadingFlags(args);
}

function commandNamed(name: string | undefined): ListedCommand {
  if (name === undefined) throw new UsageError("a command is required");
  const found = COMMANDS.find((listed) => listed.name === name);
  if (found !== undefined) return found;
  const names = COMMANDS.map((listed) => listed.name);
  const nearest = nearestName(name, names);
  throw new UsageError(
    `unknown command ${JSON.stringify(name)}${nearest === undefined ? "" : `; did you mean ${JSON.stringify(nearest)}?`}`,
  );
}

/** Errors that the user can fix, and whose messages name the remedy. */
function isForTheUser(error: unknown): error is Error {
  return error instanceof NotInstalledError || error instanceof CredentialsError;
}

/**
 * For a port in use or an unwritable folder, the message is enough. Any other error is a bug and
 * shows its stack.
 */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "code" in error;
}

let running: string | undefined;

/**
 * Ends as a program that SIGPIPE killed: silently, with the shell's status for it; with one line and
 * exit code 1 if output cannot be written otherwise. Drops stderr output. `name`: the command's name.
 */
function endWithReader(name: string): void {
  const isSetUp = running !== undefined;
  running = name;
  if (isSetUp) return;
  process.stderr.on("error", () => {});
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (SERVING.includes(running ?? "") || OWN_SESSIONS.includes(running ?? "")) return;
    if (error.code === "EPIPE") process.exit(EXIT_BROKEN_PIPE);
    const words = running === "" ? "" : ` ${running}`;
    process.stderr.write(`${PROGRAM}${words}: the output could not be written: ${systemErrorText(error)}\n`);
    process.exit(1);
  });
}
