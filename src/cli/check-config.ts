import { readManifestFiles } from "../cluster/manifest-files.ts";
import { parseManifests } from "../cluster/manifests.ts";
import { CONFIGURATION_KIND } from "../config/configuration.ts";
import { ConfigurationError } from "../config/configuration-error.ts";
import { loadConfiguration } from "../config/load-configuration.ts";
import { helpText, parseFlags } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

const HELP = helpText("sluice check-config -f FILE [-f FILE ...]", [
  ["-f, --filename FILE", "a GatewayConfiguration, or Kubernetes manifests (a file or a folder)"],
]);

/** Says everything that is wrong with the files, each with its line, in the API server's words. Exit code 0 or 2. */
export async function run(args: string[]): Promise<number> {
  const { values } = parseFlags({
    args,
    options: { filename: { type: "string", short: "f", multiple: true }, help: { type: "boolean" } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (values.filename === undefined) throw new UsageError(`-f FILE is required\n\n${HELP}`);
  let hasProblems = false;
  for (const file of values.filename) {
    try {
      process.stdout.write(`${file}: ${await check(file)}\n`);
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      hasProblems = true;
      process.stderr.write(`${error.message}\n`);
    }
  }
  return hasProblems ? 2 : 0;
}

/** What the file holds, when it is right. A configuration's manifests are checked with it. */
async function check(path: string): Promise<string> {
  const files = await readManifestFiles([path]);
  const [first] = files;
  if (files.length === 1 && first !== undefined && isConfiguration(first.text)) {
    const configuration = await loadConfiguration(path);
    const objects = parseManifests(await readManifestFiles(configuration.cluster.manifests));
    return `a valid ${CONFIGURATION_KIND}, with ${objects.length} objects in its manifests`;
  }
  return `${parseManifests(files).length} valid objects`;
}

function isConfiguration(text: string): boolean {
  return new RegExp(`^kind:\\s*["']?${CONFIGURATION_KIND}\\b`, "m").test(text);
}
