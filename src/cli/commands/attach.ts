import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { detachKeys } from "../flag-readers.ts";
import { commandFlags, podOperand } from "./connection-flags.ts";

const attachFlags = {
  ...commandFlags,
  "detach-keys": {
    value: "KEYS",
    help: "keys that end the command on a terminal, but not the process; empty for none",
    default: "ctrl-p,ctrl-q",
    parse: detachKeys,
  },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["(POD | TYPE/NAME) [-c CONTAINER] [flags]"],
  description:
    "Attaches to the main process of a container. The container decides whether there is a terminal (spec.containers.tty).",
  operands: [podOperand],
  flags: attachFlags,
  examples: [
    { title: "Show the output of the pod web", line: "sluice attach web" },
    { title: "Type to its main process, on its terminal", line: "sluice attach -it web -c main" },
  ],
  exitCodes: "The main process's own if it ends; 1 if the session failed; 2 if the command line is wrong.",
});
