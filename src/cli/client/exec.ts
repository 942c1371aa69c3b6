import { text } from "node:stream/consumers";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { execPath } from "@sluice/client/internal/pod-paths";
import { type Invocation, UsageError } from "../command.ts";
import type { command as execCommand } from "../commands/exec.ts";
import { openConnection } from "./connection.ts";
import { findContainer, runCommandSession } from "./run-command.ts";

/** Runs a command in a container, over WebSocket or SPDY. Returns the command's exit code. */
export async function run({
  values,
  operands,
  command,
}: Invocation<typeof execCommand.flags>): Promise<number> {
  if (operands.length > 1) {
    throw new UsageError(
      "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead",
    );
  }
  if (command === undefined || command.length === 0) {
    throw new UsageError("you must specify at least one command for the container");
  }
  if (values.filename !== undefined && operands.length > 0) {
    throw new UsageError("a pod, or --filename, but not both");
  }
  const connection = await openConnection(values);
  const resource =
    values.filename === undefined ? operands[0] : await resourceInFile(values.filename, connection.namespace);
  const found = await findContainer(connection, resource, values.container, {
    isQuiet: values.quiet,
    timeoutMs: values["pod-running-timeout"],
  });
  if (typeof found === "number") return found;
  return runCommandSession(connection, {
    path: execPath(found, command),
    stdin: values.stdin,
    tty: values.tty,
    isAttach: false,
    isQuiet: values.quiet,
    escapeCharacter: values["escape-char"],
  });
}

interface Manifest {
  readonly kind?: unknown;
  readonly metadata?: { readonly name?: unknown; readonly namespace?: unknown } | null;
}

/**
 * The first object of a manifest as TYPE/NAME; `-` reads standard input. Throws UsageError for a
 * file without an object, and in kubectl's words if the object is in another namespace than
 * `namespace`.
 */
async function resourceInFile(file: string, namespace: string): Promise<string> {
  const { kind, metadata } = (await firstObject(file)) ?? {};
  if (typeof kind !== "string" || typeof metadata?.name !== "string") {
    throw new UsageError(`--filename: ${file} has no object with kind and name`);
  }
  const { namespace: own = namespace } = metadata;
  if (own !== namespace) {
    throw new UsageError(
      `the namespace from the provided object "${own}" does not match the namespace "${namespace}". You must pass '--namespace=${own}' to perform this operation.`,
    );
  }
  return `${kind}/${metadata.name}`;
}

async function firstObject(file: string): Promise<Manifest | null | undefined> {
  try {
    const { parseYamlDocuments } = await import("@sluice/client/internal/config/yaml-documents");
    const manifest =
      file === "-" ? await text(process.stdin) : (await readUpTo(file, undefined, true)).toString();
    return parseYamlDocuments(manifest, file, { isManifest: true })[0]?.value as Manifest | null | undefined;
  } catch (error) {
    if (error instanceof ConfigurationError) throw new UsageError(error.message);
    throw new UsageError(`--filename: ${systemErrorText(error)}`);
  }
}
