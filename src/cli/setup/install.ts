import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { embeddedText, isSingleBinary, SLUICE_VERSION } from "@sluice/client/internal/config/version";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/install.ts";

/** A valid namespace. */
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const IMAGE = /^[\w][\w.:/@-]*$/;

/** Prints deploy/kustomize's manifests for a role, with another namespace and image. */
export async function run({ values }: Invocation<typeof command.flags>): Promise<number> {
  const { role } = values;
  if (!values["dry-run"])
    throw new UsageError("--dry-run is required: pipe the manifests that it prints into kubectl apply -f -");
  const { namespace, image } = checkInstalled(values.namespace, values.image);
  const manifests = await readManifests(role);
  process.stdout.write(
    manifests
      .replace(/^(kind: Namespace\nmetadata:\n {2}name: )sluice$/m, `$1${namespace}`)
      .replace(/\b(namespace|resourceNamespace): sluice(?=$| ?\})/gm, `$1: ${namespace}`)
      // ClusterRole names begin with the namespace; the Service's names end with it.
      .replace(/\bname: sluice-(?=sluice-)/g, `name: ${namespace}-`)
      .replace(/^( +- sluice-\w+)\.sluice(?=$|\.svc$)/gm, `$1.${namespace}`)
      .replace(/^( +image: ).*$/gm, `$1${image}`),
  );
  return 0;
}

/** Reads a folder of deploy/kustomize. */
export async function readManifests(folder: string): Promise<string> {
  const name = `deploy/kustomize/${folder}/manifests.yaml`;
  if (isSingleBinary) return embeddedText(name);
  const fromSource = new URL(`../../${name}`, import.meta.url);
  return readFile(existsSync(fromSource) ? fromSource : new URL(`../../../${name}`, import.meta.url), "utf8");
}

/** Checks namespace and image; the default image is this release's. Throws UsageError. */
export function checkInstalled(
  namespace: string,
  image = `sluice:${SLUICE_VERSION}`,
): { readonly namespace: string; readonly image: string } {
  if (!DNS_LABEL.test(namespace)) throw new UsageError(`${JSON.stringify(namespace)} is not a namespace`);
  if (!IMAGE.test(image)) throw new UsageError(`${JSON.stringify(image)} is not an image`);
  return { namespace, image };
}
