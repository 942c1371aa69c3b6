import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { listenPort } from "../flag-readers.ts";

const demoFlags = {
  dir: {
    value: "DIR",
    help: "folder for the kubeconfig and the gateway's configuration; existing files are never overwritten; default: a temporary folder",
    completes: "folder",
  },
  address: { value: "ADDR", help: "the loopback address to listen on", default: "127.0.0.1" },
  port: { value: "PORT", help: "the gateway's port; 0: any free one", default: "0", parse: listenPort },
  once: {
    help: "check every path, with a third node that accepts only WebSocket; print the table and exit with 0 or 1",
  },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["[flags]"],
  description:
    "Starts two fake nodes and the gateway on loopback, checks every path, and serves until Ctrl-C. Commands run on this machine, for clients with the token in the written kubeconfig.",
  flags: demoFlags,
  examples: [
    { title: "Serve, and print commands to try", line: "sluice demo" },
    { title: "Then, in another terminal", line: "kubectl --kubeconfig DIR/kubeconfig exec -it web -- sh" },
    { title: "Check every path, and exit", line: "sluice demo --once" },
  ],
});
