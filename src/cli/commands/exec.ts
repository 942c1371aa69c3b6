import { defineCommand } from "../command.ts";
import { commandFlags, podOperand } from "./command-flags.ts";

export const command = defineCommand({
  usage: ["(POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [ARGS...]"],
  description:
    "Runs a command in a container, over WebSocket or, where the server has none, SPDY. Against a Sluice server a session survives a lost connection.",
  operands: [
    podOperand,
    { name: "COMMAND", help: "the program and its arguments, as the container has them" },
  ],
  flags: commandFlags,
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
  exitCodes: "The command's own; 1 where the session failed; 2 where the command line is wrong.",
});
