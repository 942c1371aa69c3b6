import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";

const checkConfigFlags = {
  filename: {
    short: "f",
    value: "FILE",
    help: "a GatewayConfiguration, or Kubernetes manifests: a file or a folder",
    isRepeatable: true,
    completes: "file",
  },
  config: {
    value: "FILE",
    help: "the same as -f, as `serve` writes it",
    isRepeatable: true,
    completes: "file",
  },
  syntax: { help: "read a configuration alone, without the files and manifests that it names" },
  old: {
    value: "FILE",
    help: "the objects that the cluster holds; those of the same kind and name are judged as updates",
    isRepeatable: true,
    completes: "file",
  },
  "feature-gates": {
    value: "A=true,B=false",
    help: "the gates that manifests are judged by; a configuration sets its own",
  },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["FILE... [flags]", "-f FILE... [flags]"],
  description:
    "Validates a configuration or manifests, and prints every problem with its line, in the API server's words. It checks a configuration together with its manifests and named files. It checks names and types of all fields, and the API's rules for the fields that Sluice reads; other fields are listed.",
  operands: [{ name: "FILE", help: "the same as -f FILE", completes: "file" }],
  flags: checkConfigFlags,
  examples: [
    { title: "A configuration", line: "sluice check-config sluice.yaml" },
    {
      title: "A folder of manifests, as an update of those in live.yaml",
      line: "sluice check-config -f manifests/ --old live.yaml",
    },
  ],
  exitCodes: "0 if everything is valid; 2 otherwise.",
});
