import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { TARGET_GROUP, targetFlags } from "./target-flags.ts";

export const conformanceFlags = {
  pod: {
    value: "NAMESPACE/NAME[/CONTAINER]",
    help: "the one pod that is used; its container needs sh, cat and seq",
    completes: "pod",
  },
  only: {
    value: "PREFIX",
    help: "only cases whose id begins so, such as exec or exec/binary",
    isRepeatable: true,
  },
  list: { help: "list the cases, and run none" },
  json: { value: "FILE", help: "write a report as JSON; - is standard output", completes: "file" },
  ...targetFlags,
  kubelet: {
    value: "URL",
    help: "a kubelet, instead of an API server; --pod needs its container",
    group: TARGET_GROUP,
  },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["--pod NAMESPACE/NAME[/CONTAINER] [flags]", "--list [flags]"],
  description:
    "Tries whether a server, or a proxy in front of one, carries Kubernetes' streams right, case by case. docs/conformance.md explains the cases.",
  flags: conformanceFlags,
  examples: [
    { title: "The API server of the kubeconfig", line: "sluice conformance --pod default/web" },
    {
      title: "A proxy in front of it, exec only, with a report",
      line: "sluice conformance --pod default/web --server https://proxy --only exec --json report.json",
    },
    { title: "The cases and their requirements", line: "sluice conformance --list" },
  ],
  exitCodes: '0; 1 where a case of severity "must" failed or none passed; 2 for usage or configuration.',
});
