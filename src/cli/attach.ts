import { attachPath } from "../client/pod-paths.ts";
import { commandFlags, commandHelp, escapeOf, findContainer } from "./client/command-target.ts";
import { connectionHelp, openConnection } from "./client/connection.ts";
import { runCommandSession } from "./client/run-command.ts";
import { helpText, parseFlags } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

const HELP = helpText("sluice attach (POD | TYPE/NAME) [-c CONTAINER] [flags]", [
  ...commandHelp,
  ...connectionHelp,
]);

/** Joins the main process of a container. The exit code is its own, where it ends. */
export async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseFlags({ args, allowPositionals: true, options: commandFlags });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (positionals.length !== 1) {
    throw new UsageError(
      `expected POD, TYPE/NAME, or TYPE NAME, (at most 1 argument) saw ${positionals.length}: ${positionals.join(" ")}`,
    );
  }
  const escapeCharacter = escapeOf(values["escape-char"]);
  const connection = await openConnection(values);
  const found = await findContainer(connection, positionals[0], values.container, {
    isQuiet: values.quiet === true,
    purpose: "attach",
  });
  if (typeof found === "number") return found;
  // The terminal is the container's: a node refuses to be asked for another kind of stream than the main process has.
  if (values.tty === true && !found.hasTerminal && values.quiet !== true) {
    process.stderr.write(`error: Unable to use a TTY - container ${found.container} did not allocate one\n`);
  }
  return runCommandSession(connection, {
    path: attachPath(found),
    stdin: values.stdin === true,
    tty: found.hasTerminal,
    isAttach: true,
    isQuiet: values.quiet === true,
    escapeCharacter,
  });
}
