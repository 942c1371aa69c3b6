import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";

const ACTIONS = ["list", "show", "verify", "export", "delete"] as const;
const EXPORT = "For export";

const recordingsFlags = {
  folder: { value: "FOLDER", help: "the folder of the recordings", completes: "folder" },
  key: {
    value: "FILE",
    help: "a public key (PEM) to verify with, instead of those in the folder's keys",
    isRepeatable: true,
    completes: "file",
  },
  output: {
    short: "o",
    value: "FORMAT",
    help: "how list and show print; show takes neither wide nor name",
    choices: ["text", "wide", "json", "yaml", "name"],
    default: "text",
  },
  format: {
    value: "FORMAT",
    help: "asciicast-v2 is for older players, text has no escape sequences, raw has the exact bytes",
    choices: ["asciicast-v3", "asciicast-v2", "text", "raw"],
    default: "asciicast-v3",
    group: EXPORT,
  },
  stream: {
    value: "STREAM",
    help: "one output of a command without a terminal; for text and raw",
    choices: ["stdout", "stderr"],
    group: EXPORT,
  },
  redact: {
    value: "TEXT",
    help: "replace events that contain this text; the export still verifies; for asciicast-v3",
    isRepeatable: true,
    group: EXPORT,
  },
  "redact-command": {
    help: "leave out the command line; the export still verifies; for asciicast-v3",
    group: EXPORT,
  },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: [
    "list --folder FOLDER [flags]",
    "show|verify|export|delete --folder FOLDER ID [flags]",
    "show|export FILE [flags]",
    "verify FILE|FOLDER... [flags]",
  ],
  description:
    "Reads a folder of recordings, without a gateway. `verify` checks the signatures of a recording, and names the part that was changed. `export` writes to standard output.",
  operands: [
    { name: "ACTION", help: ACTIONS.join(", "), choices: ACTIONS },
    { name: "ID", help: "a session's id" },
    { name: "FILE", help: "a recording", completes: "file" },
  ],
  flags: recordingsFlags,
  examples: [
    { title: "All sessions", line: "sluice recordings list --folder /var/lib/sluice/recordings" },
    {
      title: "Whether anything was changed since it was recorded",
      line: "sluice recordings verify /var/lib/sluice/recordings --key recording.pub",
    },
    {
      title: "A recording without a secret that was shown",
      line: "sluice recordings export session.cast --redact hunter2 > redacted.cast",
    },
  ],
  exitCodes: "0; 1 if a recording does not verify, or there is none; 2 for usage.",
});
