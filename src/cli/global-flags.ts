import type { Flag } from "../config/flag.ts";
import { UsageError } from "./command.ts";
import { connectionFlags } from "./commands/connection-flags.ts";
import { parseFlags } from "./parse-flags.ts";

/**
 * The number of arguments before the command's name: kubectl's global flags and their values.
 * Throws UsageError.
 */
export function countLeadingFlags(args: readonly string[]): number {
  let count = 0;
  while (args[count]?.startsWith("-")) {
    const [flag = ""] = args.slice(count);
    // Refuses a flag that kubectl does not have, or that lacks its value.
    const isComplete = flag.includes("=") || (!flag.startsWith("--") && flag.length > 2);
    const [name = ""] = flag.replace(/^-+/, "").split("=");
    const row = Object.entries<Flag>(connectionFlags).find(
      ([long, { short }]) => long === name || short === name,
    );
    const takesNext = !isComplete && row !== undefined && "value" in row[1];
    parseFlags({ flags: connectionFlags }, args.slice(count, count + (takesNext ? 2 : 1)));
    count += takesNext ? 2 : 1;
  }
  if (count >= args.length) throw new UsageError("a command is required");
  return count;
}
