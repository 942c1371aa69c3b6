import { configurationSchema } from "../config/configuration.ts";
import { EXIT_BROKEN_PIPE } from "./client/report-error.ts";
import type { Invocation } from "./command.ts";
import { UsageError } from "./usage-error.ts";

/** Prints the JSON Schema of a configuration. */
export async function run({ operands }: Invocation): Promise<number> {
  if (operands.length !== 1 || operands[0] !== "schema") throw new UsageError("the operand must be schema");
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // Such as head, which has read enough.
    if (error.code === "EPIPE") process.exit(EXIT_BROKEN_PIPE);
    throw error;
  });
  process.stdout.write(`${JSON.stringify(configurationSchema(), null, 2)}\n`);
  return 0;
}
