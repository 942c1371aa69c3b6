import type { FlagTable } from "../../config/flag.ts";
import { defineCommand, type ValuesOf } from "../command.ts";
import { durationFrom, quantityBetween, ratePerSecond } from "../flag-readers.ts";
import { TARGET_GROUP, targetFlags } from "./target-flags.ts";

const MAX_PROCESSES = 64;
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

const traffic = "The load";
const report = "The report";

export const loadFlags = {
  ...targetFlags,
  speaks: {
    value: "NAME",
    help: "whose paths --server has",
    default: "api-server",
    choices: ["api-server", "kubelet"],
    group: TARGET_GROUP,
  },
  "streaming-url": {
    value: "URL",
    help: "instead: the URL that a container runtime gave for one session",
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
    help: "exec and attach: ws-v5, ws-v4, spdy; port-forward: tunnel, spdy, legacy; without it the first",
    group: traffic,
  },
  direction: {
    value: "NAME",
    help: "which way bytes go; echo: what is sent comes back",
    default: "echo",
    choices: ["echo", "upload", "download"],
    group: traffic,
  },
  verify: {
    value: "NAME",
    help: "echo, digest, sequence or none; without it every byte where the direction allows it",
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
    help: "new sessions per second, however earlier ones fare; 0 replaces those that end",
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
    help: "grow sessions, or their rate, from nothing during this time",
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
    help: "messages per second and session; 0 is as fast as they are taken",
    default: "0",
    parse: ratePerSecond,
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
    help: "the seed of the bytes that are sent; without it a random one",
    parse: quantityBetween(0, 0xffff_ffff),
    group: traffic,
  },
  processes: {
    value: "N",
    help: "generator processes; without it half of the cores",
    parse: quantityBetween(1, MAX_PROCESSES),
    group: traffic,
  },
  json: {
    value: "FILE",
    help: "write a report as JSON; - is standard output",
    completes: "file",
    group: report,
  },
  html: {
    value: "FILE",
    help: "write a report as HTML; - is standard output",
    completes: "file",
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
  ],
  description:
    "Opens sessions at any streaming server, or sends plain HTTP requests, and reports rates, latencies and what failed; every byte is verified where it can be. docs/load.md explains the modes.",
  operands: [
    {
      name: "MODE",
      help: "exec, attach, port-forward or http",
      choices: ["exec", "attach", "port-forward", "http"],
    },
    { name: "POD", help: "the pod that every session goes to", completes: "pod" },
    { name: "PORT", help: "the pod's port, where something echoes" },
    { name: "PATH", help: "the path of every request" },
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
  ],
  exitCodes: "0; 1 where a session failed or none finished; 2 for usage or configuration.",
});
