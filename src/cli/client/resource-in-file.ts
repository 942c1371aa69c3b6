import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { parseYamlDocuments } from "@sluice/client/internal/config/yaml-documents";
import { UsageError } from "../usage-error.ts";

interface Manifest {
  readonly kind?: unknown;
  readonly metadata?: { readonly name?: unknown; readonly namespace?: unknown } | null;
}

/**
 * The first object of a manifest as TYPE/NAME; `-` reads standard input. Throws UsageError for a file
 * without an object, and in kubectl's words for an object of another namespace than `namespace`.
 */
export async function resourceInFile(file: string, namespace: string): Promise<string> {
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
    const manifest = file === "-" ? await text(process.stdin) : await readFile(file, "utf8");
    return parseYamlDocuments(manifest, file, { isManifest: true })[0]?.value as Manifest | null | undefined;
  } catch (error) {
    if (error instanceof ConfigurationError) throw new UsageError(error.message);
    throw new UsageError(`--filename: ${(error as Error).message}`);
  }
}
