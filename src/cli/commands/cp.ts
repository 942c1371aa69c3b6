import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { countFrom } from "../flag-readers.ts";
import { commandFlags, connectionFlags } from "./connection-flags.ts";

const cpFlags = {
  container: commandFlags.container,
  retries: {
    value: "N",
    help: "attempts in a row without progress before the copy fails",
    default: "5",
    parse: countFrom(0),
  },
  "no-preserve": { help: "do not copy file modes" },
  "no-verify": { help: "do not compare SHA-256 (by default compared if the container has sha256sum)" },
  quiet: { short: "q", help: "no progress bar" },
  ...connectionFlags,
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["SOURCE DESTINATION [flags]"],
  description:
    "Copies a file or a folder to or from a container, resumes after lost connections, and verifies the copy. The container needs sh; folders need tar. A failed copy leaves nothing that looks complete.",
  operands: [
    {
      name: "SOURCE, DESTINATION",
      help: "PATH on this machine, [NAMESPACE/]POD:PATH in a container, or - for standard input and output; one of them is in a container",
      completes: "file",
    },
  ],
  flags: cpFlags,
  examples: [
    { title: "A file into the pod web", line: "sluice cp notes.txt web:/tmp/notes.txt" },
    {
      title: "A folder out of the container main of a pod in the namespace shop",
      line: "sluice cp shop/web:/var/log ./log -c main",
    },
    { title: "Standard input into a file", line: "pg_dump | sluice cp - db-0:/backup/dump.sql" },
  ],
});
