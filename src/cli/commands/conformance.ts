import type { FlagTable } from "../../config/flag.ts";
import { DEFAULT_RUNTIME_ENDPOINT } from "../../config/sections/kubelet-listener.ts";
import { defineCommand } from "../command.ts";
import { quantityBetween, remotePort } from "../flag-readers.ts";
import { TARGET_GROUP, targetFlags } from "./target-flags.ts";

const MAX_BULK_BYTES = 1024 * 1024 * 1024;
const MIN_IDLE_SCALE = 0.001;

function idleScale(text: string): number {
  const value = Number(text);
  if (text !== "" && value >= MIN_IDLE_SCALE && value <= 1) return value;
  throw new RangeError(`must be between ${MIN_IDLE_SCALE} and 1`);
}

export const conformanceFlags = {
  pod: {
    value: "NAMESPACE/NAME[/CONTAINER]",
    help: "the one pod that is used; cases whose programs (sh, cat, seq, tar) its container lacks are skipped",
  },
  only: {
    value: "PREFIX",
    help: "only cases whose id begins so, such as exec or exec/binary",
    isRepeatable: true,
  },
  "echo-port": {
    value: "PORT",
    help: "a port of the pod that repeats what it is sent, for the cases of port-forward",
    parse: remotePort,
  },
  "attach-input": { help: "the main process repeats its input, and may be written to" },
  "idle-scale": {
    value: "FACTOR",
    help: "what silences of 60, 120 and 300 s are multiplied by",
    default: "1",
    parse: idleScale,
  },
  "bulk-size": {
    value: "BYTES",
    help: "of large transfers, each way",
    default: "64Mi",
    parse: quantityBetween(1, MAX_BULK_BYTES),
  },
  quick: {
    help: "in less than a minute: less of everything, silences of at most 6 s; cases of every group in turn, none of which begins after 35 s",
  },
  list: { help: "list the cases, and run none" },
  json: { value: "FILE", help: "write a report as JSON; - is standard output", completes: "file" },
  junit: { value: "FILE", help: "write a report as JUnit's XML", completes: "file" },
  html: { value: "FILE", help: "write a page with the failures and how to mend them", completes: "file" },
  baseline: {
    value: "FILE",
    help: "a report of --json: only what fails now and did not then decides the exit code",
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
    help: "the streaming server of this container runtime, which gives a URL for each session; --pod needs its container",
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
    "Tries whether a server, or a proxy in front of one, carries Kubernetes' streams right, case by case. A whole run takes about 6 minutes, most of it waiting. docs/conformance.md explains the cases.",
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
      title: "In CI: a page and JUnit's XML, and failure only at what is worse than before",
      line: "sluice conformance --pod default/web --baseline last.json --junit junit.xml --html report.html",
    },
    { title: "The cases and their requirements", line: "sluice conformance --list" },
  ],
  exitCodes: '0; 1 where a case of severity "must" failed or none passed; 2 for usage or configuration.',
});
