import { defineCommand } from "../command.ts";
import { commandFlags, podOperand } from "./command-flags.ts";

export const command = defineCommand({
  usage: ["(POD | TYPE/NAME) [-c CONTAINER] [flags]"],
  description:
    "Attaches to the main process of a container. Whether there is a terminal is the container's to decide (spec.containers.tty).",
  operands: [podOperand],
  flags: commandFlags,
  examples: [
    { title: "Show the output of the pod web", line: "sluice attach web" },
    { title: "Type to its main process, on its terminal", line: "sluice attach -it web -c main" },
  ],
  exitCodes:
    "The main process's own, where it ends; 1 where the session failed; 2 where the command line is wrong.",
});
