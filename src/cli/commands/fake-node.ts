import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { listenPort } from "../flag-readers.ts";

const fakeNodeFlags = {
  name: { value: "NAME", help: "the node's name", isRequired: true },
  address: {
    value: "ADDR",
    help: "the address to listen on; any client that connects may run commands on this machine",
    default: "127.0.0.1",
  },
  port: {
    value: "PORT",
    help: "the port to listen on; 0 is any free one",
    default: "10250",
    parse: listenPort,
  },
  "declare-websockets": { help: "behave as a node that declares ExtendWebSocketsToKubelet" },
  pod: {
    value: "NAMESPACE/NAME",
    help: "a pod on the node, with the container main",
    default: "default/web",
    isRepeatable: true,
  },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["--name NAME [flags]"],
  description:
    "Starts one fake node with a self-signed certificate, for tests and compositions, until Ctrl-C or SIGTERM.",
  flags: fakeNodeFlags,
  examples: [
    { title: "A node that speaks SPDY, with one pod", line: "sluice fake-node --name node-1" },
    {
      title: "A node that takes WebSocket, with two pods",
      line: "sluice fake-node --name node-2 --declare-websockets --pod default/web --pod shop/db",
    },
  ],
});
