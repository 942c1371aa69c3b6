import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { commandFlags, podOperand } from "./connection-flags.ts";

const execFlags = {
  ...commandFlags,
  filename: {
    short: "f",
    value: "FILE",
    help: "a manifest of the pod, or of what selects it, instead of POD; - is standard input",
    completes: "file",
  },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["(POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [ARGS...]"],
  description:
    "Runs a command in a container, over WebSocket, or SPDY if the server has no WebSocket. With a Sluice server the session survives a lost connection.",
  operands: [podOperand, { name: "COMMAND", help: "the program in the container, and its arguments" }],
  flags: execFlags,
  takesCommand: true,
  examples: [
    { title: "One command in the pod web", line: "sluice exec web -- date" },
    { title: "A shell in the container main of the pod web", line: "sluice exec -it web -c main -- sh" },
    {
      title: "In a pod of the deployment web, in another namespace",
      line: "sluice exec -n shop deploy/web -- env",
    },
    { title: "Pass a file to the command", line: "sluice exec -i web -- tar xf - < files.tar" },
  ],
  exitCodes: "The command's own; 1 if the session failed; 2 if the command line is wrong.",
});
