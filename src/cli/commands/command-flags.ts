import type { FlagTable } from "../../config/flag.ts";
import type { Operand } from "../command.ts";
import { durationFrom } from "../flag-readers.ts";
import { connectionFlags } from "./connection-flags.ts";

/** kubectl's defaults differ by command. */
export function podRunningTimeout<const Default extends string>(defaultTime: Default) {
  return {
    value: "DURATION",
    help: "how long to wait if TYPE/NAME selects no pod",
    default: defaultTime,
    parse: durationFrom(1),
  } as const;
}

/** Flags that exec and attach share. */
export const commandFlags = {
  container: {
    short: "c",
    value: "NAME",
    help: "the container; default: the one in the annotation kubectl.kubernetes.io/default-container, or the first",
    completes: "container",
  },
  stdin: { short: "i", help: "pass standard input to the container" },
  tty: { short: "t", help: "standard input is a terminal; ~. at the start of a line ends the session" },
  quiet: { short: "q", help: "print only the output of the remote process" },
  "escape-char": {
    value: "CHAR",
    help: "the character before the dot that ends the session, or none",
    default: "~",
    parse: escapeCharacter,
  },
  "pod-running-timeout": podRunningTimeout("1m"),
  ...connectionFlags,
} as const satisfies FlagTable;

export const podOperand: Operand = {
  name: "POD | TYPE/NAME",
  help: "a pod, or an object that selects pods: deploy/web, svc/web, sts/db, job/once",
  completes: "pod",
};

function escapeCharacter(text: string): string {
  if (text === "none" || /^[\x21-\x7e]$/.test(text)) return text;
  throw new RangeError('must be one character, or "none"');
}
