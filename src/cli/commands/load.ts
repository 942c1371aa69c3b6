import type { FlagTable } from "../../config/flag.ts";
import { defineCommand, type ValuesOf } from "../command.ts";
import { durationFrom, loadPart, quantityBetween, reportFile, startTime } from "../flag-readers.ts";
import { TARGET_GROUP, targetFlags } from "./target-flags.ts";

const MAX_PROCESSES = 64;
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

function ratePerSecond(text: string): number {
  const value = Number(text);
  if (text !== "" && Number.isFinite(value) && value >= 0) return value;
  throw new RangeError("must be a number per second");
}

const traffic = "The load";
const report = "The report";

const loadFlags = {
  ...targetFlags,
  speaks: {
    value: "NAME",
    help: "the kind of server that --server names, which decides its paths",
    default: "api-server",
    choices: ["api-server", "kubelet"],
    group: TARGET_GROUP,
  },
  "streaming-url": {
    value: "URL",
    help: "instead: a URL that a container runtime returned for one session",
    group: TARGET_GROUP,
  },
  namespace: {
    short: "n",
    value: "NAME",
    help: "the namespace of the pod",
    default: "default",
    completes: "namespace",
    group: TARGET_GROUP,
  },
  container: {
    short: "c",
    value: "NAME",
    help: "the container",
    completes: "container",
    group: TARGET_GROUP,
  },
  protocol: {
    value: "NAME",
    help: "exec and attach: ws-v5, ws-v4, spdy; port-forward: tunnel, spdy, legacy; default: the first",
    group: traffic,
  },
  direction: {
    value: "NAME",
    help: "direction of the bytes; echo sends them there and back",
    default: "echo",
    choices: ["echo", "upload", "download"],
    group: traffic,
  },
  verify: {
    value: "NAME",
    help: "echo, digest, sequence or none; default: every byte, if the direction allows it",
    choices: ["echo", "digest", "sequence", "none"],
    group: traffic,
  },
  sessions: {
    value: "N",
    help: "concurrent sessions; with --arrival-rate, at most",
    default: "1",
    parse: quantityBetween(1, 1_000_000),
    group: traffic,
  },
  "arrival-rate": {
    value: "N",
    help: "new sessions per second, whatever happens to earlier ones; 0 replaces those that end",
    default: "0",
    parse: ratePerSecond,
    group: traffic,
  },
  count: {
    value: "N",
    help: "sessions in all; 0 is as many as fit into the duration",
    default: "0",
    parse: quantityBetween(0, Number.MAX_SAFE_INTEGER),
    group: traffic,
  },
  ramp: {
    value: "DURATION",
    help: "time in which sessions, or their rate, grow from 0",
    default: "0s",
    parse: durationFrom(0),
    group: traffic,
  },
  duration: {
    value: "DURATION",
    help: "no new sessions or messages after this time",
    default: "10s",
    parse: durationFrom(0),
    group: traffic,
  },
  messages: {
    value: "N",
    help: "messages of each session; 0 is as many as fit into the duration",
    default: "0",
    parse: quantityBetween(0, Number.MAX_SAFE_INTEGER),
    group: traffic,
  },
  "message-size": {
    value: "BYTES",
    help: "bytes of each message",
    default: "32Ki",
    parse: quantityBetween(1, MAX_MESSAGE_BYTES),
    group: traffic,
  },
  "message-rate": {
    value: "N",
    help: "messages per second and session; 0: as fast as the server accepts them",
    default: "0",
    parse: ratePerSecond,
    group: traffic,
  },
  "in-flight": {
    value: "N",
    help: "limit of a session's messages under way; 0: none; default: 1 for a server on loopback without a rate, otherwise 0",
    parse: quantityBetween(0, 1_000_000),
    group: traffic,
  },
  timeout: {
    value: "DURATION",
    help: "a session without progress for this time has failed",
    default: "30s",
    parse: durationFrom(0),
    group: traffic,
  },
  seed: {
    value: "N",
    help: "the seed of the sent bytes; default: random",
    parse: quantityBetween(0, 0xffff_ffff),
    group: traffic,
  },
  processes: {
    value: "N",
    help: "generator processes; default: half of the cores",
    parse: quantityBetween(1, MAX_PROCESSES),
    group: traffic,
  },
  part: {
    value: "I/N",
    help: "this program's part of a load that N programs share, I from 0; merge adds up their reports",
    parse: loadPart,
    group: traffic,
  },
  "start-at": {
    value: "TIME",
    help: "start of all parts: an RFC 3339 time, or +DURATION from now; a late part starts at once",
    parse: startTime,
    group: traffic,
  },
  image: {
    value: "REFERENCE",
    help: "the image of a job's pods; default: sluice with this version as its tag",
    group: report,
  },
  threshold: {
    value: "METRIC<VALUE",
    help: "a condition such as message_latency:p99<50ms or error_rate<1%; if one is not met, the exit code is 99",
    isRepeatable: true,
    group: report,
  },
  json: {
    value: "FILE",
    help: "write a report as JSON, for merge; - is standard output",
    completes: "file",
    parse: reportFile,
    group: report,
  },
  html: {
    value: "FILE",
    help: "write a report as HTML; - is standard output",
    completes: "file",
    parse: reportFile,
    group: report,
  },
  generator: { help: "one of the processes that the command starts", isHidden: true },
} as const satisfies FlagTable;

export type LoadValues = ValuesOf<typeof loadFlags>;

export const command = defineCommand({
  usage: [
    "(exec | attach) POD [flags] [-- COMMAND...]",
    "port-forward POD PORT [flags]",
    "http PATH [flags]",
    "merge FILE... [flags]",
    "job PARTS [-n NAMESPACE] [--image REFERENCE] [--start-at TIME] -- (exec | ...) [flags]",
  ],
  description:
    "Opens sessions at any streaming server, or sends plain HTTP requests, and reports rates, latencies and failures. It verifies every byte if the mode allows it. merge adds up the reports of parallel parts; job prints a Kubernetes Job that runs a part in each pod. docs/load.md explains the modes.",
  operands: [
    {
      name: "MODE",
      help: "exec, attach, port-forward, http, merge or job",
      choices: ["exec", "attach", "port-forward", "http", "merge", "job"],
    },
    { name: "POD", help: "the pod for all sessions", completes: "pod" },
    { name: "PORT", help: "a port of the pod that echoes" },
    { name: "PATH", help: "the path of every request" },
    {
      name: "FILE",
      help: "a report of --json, or a log that holds some; - is standard input",
      completes: "file",
    },
  ],
  flags: loadFlags,
  takesCommand: true,
  examples: [
    { title: "50 sessions that echo for 10 seconds", line: "sluice load exec web --sessions 50" },
    {
      title: "20 new sessions per second, downloading",
      line: "sluice load exec web --arrival-rate 20 --sessions 500 --direction download",
    },
    {
      title: "Port-forwards to a TCP echo, with a report",
      line: "sluice load port-forward web 7 --sessions 10 --html report.html",
    },
    {
      title: "Plain requests through an Ingress",
      line: "sluice load http / --server http://127.0.0.1:8080 --sessions 64",
    },
    {
      title: "Fail a pipeline if latency or failures grow",
      line: "sluice load exec web --threshold 'message_latency:p99<50ms' --threshold 'error_rate<0.1%'",
    },
    {
      title: "One of two machines' parts",
      line: "sluice load exec web --sessions 2000 --seed 1 --part 0/2 --json 0.json",
    },
    {
      title: "A Job of four pods that start together, a minute from now",
      line: "sluice load job 4 --start-at +1m -- exec web --sessions 2000 --duration 1m",
    },
    {
      title: "The table of both",
      line: "sluice load merge 0.json 1.json --threshold 'first_byte_latency:p99<1s'",
    },
  ],
  exitCodes:
    "0; 99 if a threshold is not met; 1 if a session failed and no threshold covers failures, if none finished, or if merge lacks a part; 2 for usage, configuration or a file that cannot be merged.",
});
