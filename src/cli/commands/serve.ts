import type { FlagTable } from "../../config/flag.ts";
import { kubeApiServerFlags } from "../../config/kube-apiserver-flags.ts";
import { parseWorkers } from "../../config/workers.ts";
import { defineCommand } from "../command.ts";

export const serveFlags = {
  config: {
    value: "FILE",
    help: "the GatewayConfiguration (sluice.dev/v1alpha1)",
    isRequired: true,
    completes: "file",
  },
  workers: {
    value: "N|auto",
    help: "how many processes serve; auto is one for each core; overrides the file's workers",
    parse: parseWorkers,
  },
  ...kubeApiServerFlags,
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["--config FILE [flags]"],
  description:
    "Serves the listeners of a configuration. SIGHUP reads the configuration again; SIGTERM and Ctrl-C stop accepting, and give running sessions the grace period.",
  flags: serveFlags,
  examples: [
    { title: "By a configuration file", line: "sluice serve --config sluice.yaml" },
    {
      title: "On every core, with the audit log on standard output",
      line: "sluice serve --config sluice.yaml --workers auto --audit-log-path -",
    },
    { title: "Apply what changed in the file", line: "kill -HUP PID" },
  ],
});
