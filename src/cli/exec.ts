import { execPath } from "../client/pod-paths.ts";
import { commandFlags, commandHelp, escapeOf, findContainer } from "./client/command-target.ts";
import { connectionHelp, openConnection, splitAtDashes } from "./client/connection.ts";
import { runCommandSession } from "./client/run-command.ts";
import { helpText, parseFlags } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

const HELP = helpText("sluice exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...]", [
  ...commandHelp,
  ...connectionHelp,
]);

/** Runs a command in a container, over WebSocket or SPDY. The exit code is the command's own. */
export async function run(args: string[]): Promise<number> {
  const { flags, command } = splitAtDashes(args);
  const { values, positionals } = parseFlags({ args: flags, allowPositionals: true, options: commandFlags });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (positionals.length > 1) {
    throw new UsageError(
      "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead",
    );
  }
  if (command === undefined || command.length === 0) {
    throw new UsageError("you must specify at least one command for the container");
  }
  const escapeCharacter = escapeOf(values["escape-char"]);
  const connection = await openConnection(values);
  const found = await findContainer(connection, positionals[0], values.container, {
    isQuiet: values.quiet === true,
  });
  if (typeof found === "number") return found;
  return runCommandSession(connection, {
    path: execPath(found, command),
    stdin: values.stdin === true,
    tty: values.tty === true,
    isAttach: false,
    isQuiet: values.quiet === true,
    escapeCharacter,
  });
}
