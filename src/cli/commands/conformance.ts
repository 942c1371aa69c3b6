import type { FlagTable } from "../../config/flag.ts";
import { DEFAULT_RUNTIME_ENDPOINT } from "../../config/sections/kubelet-listener.ts";
import { defineCommand } from "../command.ts";
import { quantityBetween, remotePort, reportFile } from "../flag-readers.ts";
import { TARGET_GROUP, targetFlags } from "./target-flags.ts";

const MAX_BULK_BYTES = 1024 * 1024 * 1024;
const MIN_IDLE_SCALE = 0.001;

function idleScale(text: string): number {
  const value = Number(text);
  if (text !== "" && value >= MIN_IDLE_SCALE && value <= 1) return value;
  throw new RangeError(`must be between ${MIN_IDLE_SCALE} and 1`);
}

const conformanceFlags = {
  pod: {
    value: "NAMESPACE/NAME[/CONTAINER]",
    help: "the pod for all cases; cases are skipped if its container lacks their programs (sh, cat, seq, tar)",
  },
  only: {
    value: "PREFIX",
    help: "only cases with this prefix, such as exec or exec/binary",
    isRepeatable: true,
  },
  "echo-port": {
    value: "PORT",
    help: "a port of the pod that echoes its input, for port-forward cases",
    parse: remotePort,
  },
  "attach-input": { help: "run attach cases: the main process echoes its input, and may be written to" },
  "idle-scale": {
    value: "FACTOR",
    help: "multiplies the silences of 60, 120 and 300 s",
    default: "1",
    parse: idleScale,
  },
  "bulk-size": {
    value: "BYTES",
    help: "size of large transfers, in each direction",
    default: "64Mi",
    parse: quantityBetween(1, MAX_BULK_BYTES),
  },
  quick: {
    help: "finish in a minute: smaller transfers, silences of at most 6 s, cases of every group in turn; none starts after 35 s",
  },
  list: { help: "list the cases, and run none" },
  json: {
    value: "FILE",
    help: "write a report as JSON; - is standard output",
    completes: "file",
    parse: reportFile,
  },
  junit: { value: "FILE", help: "write a report as JUnit's XML", completes: "file", parse: reportFile },
  html: {
    value: "FILE",
    help: "write a page with the failures and how to fix them",
    completes: "file",
    parse: reportFile,
  },
  baseline: {
    value: "FILE",
    help: "an earlier report of --json: only new failures count for the exit code",
    completes: "file",
  },
  ...targetFlags,
  kubelet: {
    value: "URL",
    help: "a kubelet, instead of an API server; --pod needs its container",
    group: TARGET_GROUP,
  },
  "runtime-endpoint": {
    value: "unix://PATH",
    help: "test this container runtime's streaming server; --pod must name the container",
    group: TARGET_GROUP,
  },
  "streaming-url": {
    value: "URL",
    help: `the runtime's streaming server as it is reached here, such as through a proxy; the runtime is --runtime-endpoint, or ${DEFAULT_RUNTIME_ENDPOINT}`,
    group: TARGET_GROUP,
  },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["--pod NAMESPACE/NAME[/CONTAINER] [flags]", "--list [flags]"],
  description:
    "Tests case by case whether a server or proxy carries Kubernetes' streams correctly. A full run takes about 6 minutes, most of it waiting. docs/conformance.md explains the cases.",
  flags: conformanceFlags,
  examples: [
    { title: "The API server of the kubeconfig", line: "sluice conformance --pod default/web" },
    {
      title: "A first look, with port-forward to a port that echoes",
      line: "sluice conformance --pod default/web --echo-port 7 --quick",
    },
    {
      title: "A proxy in front of it, exec only, with a report",
      line: "sluice conformance --pod default/web --server https://proxy --only exec --json report.json",
    },
    {
      title: "The streaming server of this node's containerd, as root",
      line: "sluice conformance --pod default/web --runtime-endpoint unix:///run/containerd/containerd.sock",
    },
    {
      title: "In CI: write HTML and JUnit XML, and fail only for new failures",
      line: "sluice conformance --pod default/web --baseline last.json --junit junit.xml --html report.html",
    },
    { title: "The cases and their requirements", line: "sluice conformance --list" },
  ],
  exitCodes: '0; 1 if a case of severity "must" failed or none passed; 2 for usage or configuration.',
});
