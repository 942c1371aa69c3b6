import { configurationSchema } from "../../config/configuration.ts";
import { type Invocation, UsageError } from "../command.ts";

/** Prints the JSON Schema of a configuration. */
export async function run({ operands }: Invocation): Promise<number> {
  if (operands.length !== 1 || operands[0] !== "schema") throw new UsageError("the operand must be schema");
  process.stdout.write(`${JSON.stringify(configurationSchema(), null, 2)}\n`);
  return 0;
}
