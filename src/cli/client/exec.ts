import { execPath } from "@sluice/client/internal/pod-paths";
import type { Invocation } from "../command.ts";
import type { execFlags } from "../commands/exec.ts";
import { UsageError } from "../usage-error.ts";
import { findContainer } from "./command-target.ts";
import { openConnection } from "./connection.ts";
import { resourceInFile } from "./resource-in-file.ts";
import { runCommandSession } from "./run-command.ts";

/** Runs a command in a container, over WebSocket or SPDY. Returns the command's exit code. */
export async function run({ values, operands, command }: Invocation<typeof execFlags>): Promise<number> {
  if (operands.length > 1) {
    throw new UsageError(
      "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead",
    );
  }
  if (command === undefined || command.length === 0) {
    throw new UsageError("you must specify at least one command for the container");
  }
  if (values.filename !== undefined && operands.length > 0) {
    throw new UsageError("a pod, or --filename, but not both");
  }
  const connection = await openConnection(values);
  const resource =
    values.filename === undefined ? operands[0] : await resourceInFile(values.filename, connection.namespace);
  const found = await findContainer(connection, resource, values.container, {
    isQuiet: values.quiet,
    timeoutMs: values["pod-running-timeout"],
  });
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
