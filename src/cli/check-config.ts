import { readManifestFiles } from "../cluster/manifest-files.ts";
import { parseManifests, readManifests } from "../cluster/manifests.ts";
import { CONFIGURATION_KIND } from "../config/configuration.ts";
import { ConfigurationError } from "../config/configuration-error.ts";
import { FeatureGateError, FeatureGates } from "../config/feature-gates.ts";
import { loadConfiguration } from "../config/load-configuration.ts";
import { checkNamedFiles } from "../config/named-files.ts";
import { helpText, parseFlags } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

const HELP = helpText("sluice check-config -f FILE [-f FILE ...]", [
  ["-f, --filename FILE", "a GatewayConfiguration, or Kubernetes manifests (a file or a folder)"],
  ["--feature-gates A=true,B=false", "gates that manifests are judged by; a configuration sets its own"],
]);

/** Says everything that is wrong with the files, each with its line, in the API server's words. Exit code 0 or 2. */
export async function run(args: string[]): Promise<number> {
  const { values } = parseFlags({
    args,
    options: {
      filename: { type: "string", short: "f", multiple: true },
      "feature-gates": { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (values.filename === undefined) throw new UsageError(`-f FILE is required\n\n${HELP}`);
  const gates = gatesOf(values["feature-gates"] ?? "");
  let hasProblems = false;
  for (const file of values.filename) {
    try {
      process.stdout.write(`${file}: ${await check(file, gates)}\n`);
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      hasProblems = true;
      process.stderr.write(`${error.message}\n`);
    }
  }
  return hasProblems ? 2 : 0;
}

/** What the file holds, when it is right. A configuration's manifests are checked with it. */
async function check(path: string, gates: FeatureGates): Promise<string> {
  const files = await readManifestFiles([path]);
  const [first] = files;
  if (files.length === 1 && first !== undefined && isConfiguration(first.text)) {
    const { cluster, featureGates, namedFiles } = await loadConfiguration(path);
    await checkNamedFiles(namedFiles);
    const objects = parseManifests(await readManifestFiles(cluster.manifests), featureGates);
    return `a valid ${CONFIGURATION_KIND}, with ${objects.length} objects in its manifests`;
  }
  const { objects, warnings } = readManifests(files, gates);
  for (const warning of warnings) process.stderr.write(`Warning: ${warning}\n`);
  return `${objects.length} valid object${objects.length === 1 ? "" : "s"}`;
}

function gatesOf(flag: string): FeatureGates {
  try {
    return FeatureGates.parse(flag);
  } catch (error) {
    if (!(error instanceof FeatureGateError)) throw error;
    throw new UsageError(error.message);
  }
}

function isConfiguration(text: string): boolean {
  return new RegExp(`^kind:\\s*["']?${CONFIGURATION_KIND}\\b`, "m").test(text);
}
