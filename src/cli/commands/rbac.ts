import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";

const rbacFlags = {
  config: {
    value: "FILE",
    help: "the GatewayConfiguration of the gateway",
    isRequired: true,
    completes: "file",
  },
  name: { value: "NAME", help: "name of the ClusterRole and of its binding", default: "sluice" },
  "service-account": {
    value: "NAMESPACE/NAME",
    help: "the account that the gateway runs as",
    default: "sluice/sluice",
  },
  user: { value: "NAME", help: "the user of the gateway's credentials, instead of a service account" },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["--config FILE [flags]"],
  description:
    "Prints a ClusterRole with the permissions that a gateway of this configuration needs in a live cluster, and its binding. Each rule names the field that needs it.",
  flags: rbacFlags,
  examples: [
    { title: "For the account sluice in the namespace sluice", line: "sluice rbac --config sluice.yaml" },
    {
      title: "For the user of a client certificate",
      line: "sluice rbac --config sluice.yaml --user sluice-gateway",
    },
  ],
});
