// src/cli: commands: a table of flags for each (commands/), its program, parser, help

import * as nodeModule from "node:module";
import { homedir } from "node:os";
import path from "node:path";
import { ConfigurationError } from "../config/configuration-error.ts";
import { nearestName } from "../config/nearest-name.ts";
import { NotInstalledError } from "../config/optional-package.ts";
import { isSingleBinary } from "../config/own-files.ts";
import { SLUICE_VERSION } from "../config/version.ts";
import { CredentialsError } from "../kubernetes/credentials-error.ts";
import { maskControls } from "../observability/mask-controls.ts";
import { COMMANDS, type ListedCommand } from "./command-list.ts";
import { parseFlags } from "./parse-flags.ts";
import { EXIT_BROKEN_PIPE, UsageError } from "./usage-error.ts";

/** Programs that go on without a reader of their output: they serve others. */
const SERVING: readonly string[] = ["demo", "serve", "agent", "fake-node"];
/** Programs whose sessions report it, and end what they have begun. */
const OWN_SESSIONS: readonly string[] = ["exec", "attach"];

/** What was typed: kubectl runs its plugin by this name. */
const PROGRAM = path.basename(process.argv[1] ?? "") === "kubectl-sluice" ? "kubectl sluice" : "sluice";

const HELP_WORDS: readonly (string | undefined)[] = ["help", "--help", "-h"];

/** Runs `sluice ARGS` and resolves to the exit code. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  let name = "";
  endWithReader("");
  try {
    if (args[0] === "__complete") {
      const { answerShell } = await import("./completion/answer-shell.ts");
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
        `${PROGRAM}${name}: ${maskControls(error.message)}\n${lines}See '${PROGRAM}${name} --help' for usage.\n`,
      );
      return 2;
    }
    if (error instanceof ConfigurationError) {
      process.stderr.write(`${PROGRAM}${name}: ${maskControls(error.message)}\n`);
      return 2;
    }
    if (!isSystemError(error) && !isForTheUser(error)) throw error;
    process.stderr.write(`${PROGRAM}${name}: ${maskControls(error.message)}\n`);
    // As with an uncaught error: nothing else ends what the command had started.
    process.exit(1);
  }
}

/** Runs one command, or prints its help. Throws UsageError, and whatever the command throws. */
export async function runCommand(name: string, args: readonly string[]): Promise<number> {
  const { group, load, loadProgram } = commandNamed(name);
  // Before anything of the command is loaded: what is loaded already is not in the cache.
  if (group === "Client") enableCompileCache();
  const { command } = await load();
  endWithReader(name);
  const invocation = parseFlags(command, args);
  if (invocation !== "help") return await (await loadProgram()).run(invocation);
  const { asTyped, commandHelp, helpWidth } = await import("./help-text.ts");
  process.stdout.write(asTyped(PROGRAM, commandHelp(name, command, helpWidth(process.stdout.columns))));
  return 0;
}

/** Every way to call it, as help has them. */
async function usageOf(name: string): Promise<string> {
  const { command } = await commandNamed(name).load();
  return `Usage:\n${command.usage.map((line) => `  ${PROGRAM} ${name} ${line}\n`).join("")}`;
}

/** From Node 22.8 on. The folder is the user's: in the system's temporary one others could put code. */
function enableCompileCache(): void {
  const cache = process.env.XDG_CACHE_HOME ?? path.join(homedir(), ".cache");
  const enable = (nodeModule as { enableCompileCache?: (folder: string) => unknown }).enableCompileCache;
  enable?.(path.join(cache, "sluice", "compiled"));
}

/** Where the command's name stands behind kubectl's global flags. Throws UsageError. */
async function commandIndex(args: readonly string[]): Promise<number> {
  const { countLeadingFlags } = await import("./global-flags.ts");
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

/** Messages that name the remedy, of faults that are not ours. */
function isForTheUser(error: unknown): error is Error {
  return error instanceof NotInstalledError || error instanceof CredentialsError;
}

/** A port in use, a folder that must not be written: the message suffices. Any other error is a defect, and has its stack. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "code" in error;
}

let running: string | undefined;

/** As SIGPIPE ends other programs: silent, with a shell's status of it. What is said on stderr is dropped there. `name`: of the command. */
function endWithReader(name: string): void {
  const isSetUp = running !== undefined;
  running = name;
  if (isSetUp) return;
  process.stderr.on("error", () => {});
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (SERVING.includes(running ?? "") || OWN_SESSIONS.includes(running ?? "")) return;
    if (error.code === "EPIPE") process.exit(EXIT_BROKEN_PIPE);
    throw error;
  });
}
