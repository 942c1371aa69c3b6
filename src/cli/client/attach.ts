import { attachPath } from "@sluice/client/internal/pod-paths";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/attach.ts";
import { openConnection } from "./connection.ts";
import { findContainer, runCommandSession } from "./run-command.ts";

/** Joins a container's main process. Returns that process's exit code, if it ends. */
export async function run({ values, operands }: Invocation<typeof command.flags>): Promise<number> {
  if (operands.length === 0) throw new UsageError("at least 1 argument is required for attach");
  if (operands.length > 1) {
    throw new UsageError(
      `expected POD, TYPE/NAME, or TYPE NAME, (at most 1 argument) saw ${operands.length}: ${operands.join(" ")}`,
    );
  }
  const connection = await openConnection(values);
  const found = await findContainer(connection, operands[0], values.container, {
    isQuiet: values.quiet,
    timeoutMs: values["pod-running-timeout"],
    purpose: "attach",
  });
  if (typeof found === "number") return found;
  // A node refuses a terminal if the main process does not have one.
  if (values.tty && !found.hasTerminal && !values.quiet) {
    process.stderr.write(`error: Unable to use a TTY - container ${found.container} did not allocate one\n`);
  }
  return runCommandSession(connection, {
    path: attachPath(found),
    stdin: values.stdin,
    tty: found.hasTerminal,
    isAttach: true,
    isQuiet: values.quiet,
    escapeCharacter: values["escape-char"],
    detachKeys: values["detach-keys"],
  });
}
