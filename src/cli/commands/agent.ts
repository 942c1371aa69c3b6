import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { listenPort } from "../flag-readers.ts";
import { connectionFlags } from "./connection-flags.ts";

const { "request-timeout": _, ...apiServerFlags } = connectionFlags;

const agentFlags = {
  address: { value: "ADDR", help: "the loopback address to listen on", default: "127.0.0.1" },
  port: { value: "PORT", help: "the port to listen on; 0 is any free one", default: "0", parse: listenPort },
  "write-kubeconfig": {
    value: "FILE",
    help: "file for the clients' kubeconfig; a file that no agent wrote is not replaced",
    completes: "file",
  },
  dir: {
    value: "DIR",
    help: "write it to DIR/kubeconfig; with neither flag, to a temporary folder",
    completes: "folder",
  },
  "admin-port": {
    value: "PORT",
    help: "serve health, sessions and metrics on this port of 127.0.0.1, to every local user; default: off",
    parse: listenPort,
  },
  ...apiServerFlags,
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["[flags]"],
  description:
    "Serves a local address for clients of any age. It accepts SPDY and WebSocket, and speaks WebSocket to the API server, so that old clients work through proxies without SPDY. It runs until Ctrl-C or SIGTERM.",
  flags: agentFlags,
  examples: [
    {
      title: "Print `ready FILE`; point any kubectl at that file",
      line: "sluice agent --write-kubeconfig agent.kubeconfig",
    },
    { title: "And use it", line: "kubectl --kubeconfig agent.kubeconfig exec -it web -- sh" },
  ],
});
