import { configurationFlags } from "../../config/configuration.ts";
import type { Flag, FlagTable } from "../../config/flag.ts";
import type { FlagOfField } from "../../config/read-flags.ts";
import { defineCommand } from "../command.ts";

/** Each flag overrides a field of the file. The names are kube-apiserver's; --kubeconfig is the kubelet's. */
const fieldFlags: FlagTable = Object.fromEntries(
  configurationFlags.map((flag): [string, Flag] => [flag.name, commandFlag(flag)]),
);

const serveFlags = {
  config: {
    value: "FILE",
    help: "the GatewayConfiguration (sluice.dev/v1alpha1)",
    isRequired: true,
    completes: "file",
  },
  ...(fieldFlags as Readonly<Record<never, Flag>>),
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
    { title: "Apply changes of the file", line: "kill -HUP PID" },
  ],
});

function commandFlag({ placeholder, sentence, choices, section }: FlagOfField): Flag {
  return {
    value: placeholder,
    help: sentence.replace(/\.$/, "").replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase()),
    ...(placeholder === "FILE" && { completes: "file" as const }),
    ...(choices !== undefined && { choices }),
    ...(section !== "" && { group: `Overrides of the file's ${section}` }),
  };
}
