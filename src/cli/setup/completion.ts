import type { Invocation } from "../command.ts";
import { UsageError } from "../usage-error.ts";
import { COMPLETION_SCRIPTS } from "./completion-scripts.ts";

/** Prints one shell's script. */
export async function run({ operands }: Invocation): Promise<number> {
  const [shell = "", ...more] = operands;
  if (!isShell(shell) || more.length > 0) throw new UsageError("bash, zsh or fish is required");
  process.stdout.write(COMPLETION_SCRIPTS[shell]);
  return 0;
}

function isShell(text: string): text is keyof typeof COMPLETION_SCRIPTS {
  return Object.hasOwn(COMPLETION_SCRIPTS, text);
}
