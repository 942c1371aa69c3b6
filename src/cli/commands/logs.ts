import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { countFrom, durationFrom } from "../flag-readers.ts";
import { connectionFlags, podOperand, podRunningTimeout } from "./connection-flags.ts";

const logsFlags = {
  container: { short: "c", value: "NAME", help: "print the log of this container", completes: "container" },
  "all-containers": { help: "print the logs of all containers of the pods, one after the other" },
  "all-pods": { help: "print the logs of all pods that TYPE/NAME selects; sets --prefix" },
  selector: { short: "l", value: "LABELS", help: "the logs of pods with these labels, such as app=web" },
  follow: {
    short: "f",
    help: "print lines as they are written; a lost connection loses and doubles none",
  },
  previous: { short: "p", help: "print the log of the container's previous run" },
  since: {
    value: "DURATION",
    help: "only lines newer than this, such as 5s, 2m or 3h; 0s is all",
    default: "0s",
    parse: durationFrom(0),
  },
  "since-time": { value: "TIME", help: "only lines since this time, such as 2026-01-31T12:00:00Z" },
  tail: {
    value: "LINES",
    help: "only the last lines; -1 is all, and 10 with --selector",
    default: "-1",
    parse: tailLines,
  },
  timestamps: { help: "begin each line with its time" },
  prefix: { help: "begin each line with its pod and container" },
  "limit-bytes": {
    value: "BYTES",
    help: "end after this many bytes; 0 is without a limit",
    default: "0",
    parse: countFrom(0, 15),
  },
  "max-log-requests": {
    value: "NUMBER",
    help: "how many logs may be followed at once",
    default: "5",
    parse: countFrom(1),
  },
  "ignore-errors": { help: "print the error of a log, and read the others" },
  "insecure-skip-tls-verify-backend": {
    help: "ask the API server not to verify the kubelet's certificate",
  },
  "pod-running-timeout": podRunningTimeout("20s"),
  ...connectionFlags,
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["(POD | TYPE/NAME) [CONTAINER] [flags]", "-l LABELS [flags]"],
  description:
    "Prints the logs of containers. If the connection breaks, it continues after the last line that it printed.",
  operands: [podOperand, { name: "CONTAINER", help: "as --container", completes: "container" }],
  flags: logsFlags,
  examples: [
    { title: "The log of the pod web", line: "sluice logs web" },
    { title: "Go on with it, from its last 20 lines", line: "sluice logs -f --tail 20 web" },
    { title: "What it printed before it was restarted", line: "sluice logs -p web -c main" },
    {
      title: "All containers of all pods with a label, as they write",
      line: "sluice logs -f -l app=web --all-containers --prefix",
    },
  ],
});

function tailLines(text: string): number {
  if (/^(-1|\d{1,15})$/.test(text)) return Number(text);
  throw new RangeError("must be a number of lines, or -1");
}
