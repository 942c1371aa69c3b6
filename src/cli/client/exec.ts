import { execPath } from "@sluice/client/internal/pod-paths";
import type { Invocation } from "../command.ts";
import type { commandFlags } from "../commands/command-flags.ts";
import { UsageError } from "../usage-error.ts";
import { findContainer } from "./command-target.ts";
import { openConnection } from "./connection.ts";
import { runCommandSession } from "./run-command.ts";

/** Runs a command in a container, over WebSocket or SPDY. Returns the command's exit code. */
export async function run({ values, operands, command }: Invocation<typeof commandFlags>): Promise<number> {
  if (operands.length > 1) {
    throw new UsageError(
      "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead",
    );
  }
  if (command === undefined || command.length === 0) {
    throw new UsageError("you must specify at least one command for the container");
  }
  const connection = await openConnection(values);
  const found = await findContainer(connection, operands[0], values.container, { isQuiet: values.quiet });
  if (typeof found === "number") return found;
  return runCommandSession(connection, {
    path: execPath(found, command),
    stdin: values.stdin,
    tty: values.tty,
    isAttach: false,
    isQuiet: values.quiet,
    escapeCharacter: values["escape-char"],
  });
}
