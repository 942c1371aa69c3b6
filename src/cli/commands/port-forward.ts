import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { connectionFlags, podOperand, podRunningTimeout } from "./connection-flags.ts";

const portForwardFlags = {
  address: {
    value: "LIST",
    help: "the addresses to listen on, separated by commas; only IP addresses and localhost",
    default: "localhost",
  },
  "pod-running-timeout": podRunningTimeout("1m"),
  ...connectionFlags,
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["(POD | TYPE/NAME) [flags] [LOCAL_PORT:]REMOTE_PORT..."],
  description:
    "Forwards local ports to a pod, or to the pods of a service, deployment or similar object, until Ctrl-C. Each connection goes to a ready pod; a failed connection or a replaced pod does not end the command.",
  operands: [
    podOperand,
    {
      name: "[LOCAL_PORT:]REMOTE_PORT",
      help: "8080:80 listens on 8080; 80 listens on 80; :80 listens on any free port. The remote port of a service is the service's own. A port's name stands for its number",
    },
  ],
  flags: portForwardFlags,
  examples: [
    { title: "http://localhost:8080 is port 80 of the pod web", line: "sluice port-forward web 8080:80" },
    { title: "Two ports of a service", line: "sluice port-forward svc/web 8080:80 8443:443" },
    { title: "On every address of this machine", line: "sluice port-forward --address 0.0.0.0 web 8080:80" },
  ],
});
