import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { detachKeys } from "../flag-readers.ts";
import { connectionFlags } from "./connection-flags.ts";

const ACTIONS = ["list", "watch", "join", "end"] as const;
const LIST = "For list";

const sessionsFlags = {
  "all-namespaces": {
    short: "A",
    help: "sessions of all namespaces; watch, join and end find the session in any of them",
  },
  selector: {
    short: "l",
    value: "LABELS",
    help: "only sessions with these labels, such as sluice.dev/pod=web",
    group: LIST,
  },
  "field-selector": {
    value: "FIELDS",
    help: "only sessions with these fields, such as spec.user.username=ana",
    group: LIST,
  },
  watch: { short: "w", help: "then print sessions as they begin and end", group: LIST },
  output: {
    short: "o",
    value: "FORMAT",
    help: "how to print them; with --watch, json is one line each, and yaml one document",
    choices: ["table", "wide", "json", "yaml", "name"],
    default: "table",
    group: LIST,
  },
  "detach-keys": {
    value: "KEYS",
    help: "keys that leave the session, at a terminal; empty for none",
    default: "ctrl-p,ctrl-q",
    parse: detachKeys,
    group: "For join",
  },
  reason: { value: "TEXT", help: "the reason, for the session's client and the audit log", group: "For end" },
  ...connectionFlags,
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["list [flags]", "watch NAME [flags]", "join NAME [flags]", "end NAME... [--reason TEXT] [flags]"],
  description:
    "Lists the running sessions of a gateway, in all of its workers and replicas, shows the live output of one, lets you type into one beside its user, and ends them. A session's name is its id in logs, audit and recordings. The user needs list, watch, get and delete of streamingsessions.sluice.dev, get of streamingsessions/output, and to join get and create of streamingsessions/attach beside the right to open such a session.",
  operands: [
    { name: "ACTION", help: ACTIONS.join(", "), choices: ACTIONS },
    { name: "NAME", help: "a session" },
  ],
  flags: sessionsFlags,
  examples: [
    { title: "Every session of the gateway", line: "sluice sessions list -A" },
    {
      title: "One user's sessions, as they come and go",
      line: "sluice sessions list -A -w --field-selector spec.user.username=ana",
    },
    {
      title: "See what a session prints, until it ends or Ctrl-C",
      line: "sluice sessions watch e2a239c2-35d1-8de3-8d3c-911eeff0f9e2",
    },
    {
      title: "Type into it, too, until it ends or ctrl-p,ctrl-q",
      line: "sluice sessions join e2a239c2-35d1-8de3-8d3c-911eeff0f9e2",
    },
    {
      title: "End a session",
      line: "sluice sessions end e2a239c2-35d1-8de3-8d3c-911eeff0f9e2 --reason INC-42",
    },
  ],
});
