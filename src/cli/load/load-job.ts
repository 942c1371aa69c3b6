import { randomBytes } from "node:crypto";
import { SERVICE_ACCOUNT_FOLDER } from "@sluice/client/internal/net/in-cluster-server";
import { type LoadValues, command as loadCommand } from "../commands/load.ts";
import { countFrom } from "../flag-readers.ts";
import { parseFlags } from "../parse-flags.ts";
import { checkInstalled, readManifests } from "../setup/install.ts";
import { UsageError } from "../usage-error.ts";
import { partOf, planOf, processesOf } from "./load-plan.ts";

/** The job sets these for each pod. A token would be visible in the Job. */
const NOT_OF_A_JOB = ["part", "start-at", "json", "html", "threshold", "token"] as const;
/** Time from a pod's start to its program's, and from the program's end to the Job's. */
const MARGIN_SECONDS = 300;

/**
 * Prints the Indexed Job in deploy/kustomize/load with the user's own load. Throws UsageError.
 * `args`: the arguments of `sluice load`.
 */
export async function printJob(
  { namespace, image, threshold, "start-at": startAtMs }: LoadValues,
  [partsText = "", ...rest]: readonly string[],
  args: readonly string[],
): Promise<number> {
  if (rest.length > 0 || args.length === 0)
    throw new UsageError('job takes PARTS, "--" and the arguments of a load');
  const parts = partsIn(partsText);
  const target = checkInstalled(namespace, image);
  const { plan, server, own } = loadOf(args, parts);
  const waitMs = Math.max(0, (startAtMs ?? 0) - Date.now());
  const seconds = Math.ceil((waitMs + plan.durationMs + 2 * plan.timeoutMs) / 1_000) + MARGIN_SECONDS;
  const start = startAtMs === undefined ? [] : [`--start-at=${new Date(startAtMs).toISOString()}`];
  const part = `--part=$(JOB_COMPLETION_INDEX)/${parts}`;
  const podArgs = JSON.stringify(["load", part, ...start, ...own, ...server, ...args]);
  const manifests = (await readManifests("load"))
    .replace(/^( +namespace: ).*$/gm, `$1${target.namespace}`)
    .replace(/^( +(?:completions|parallelism): ).*$/gm, `$1${parts}`)
    .replace(/^( +activeDeadlineSeconds: ).*$/m, `$1${seconds}`)
    .replace(/^( +image: ).*$/m, `$1${target.image}`)
    // A function, because arguments may contain replacement patterns.
    .replace(/^( +args:)\n(?: +- .*\n)+/m, (_, key: string) => `${key} ${podArgs}\n`);
  const given = threshold.map((text) => ` --threshold '${text}'`).join("");
  process.stdout.write(`# kubectl apply -f -; when the Job has ended:
#   kubectl -n ${target.namespace} logs -l batch.kubernetes.io/job-name=sluice-load --tail=-1 --max-log-requests=${parts} | sluice load merge -${given}
${manifests}`);
  return 0;
}

function partsIn(text: string): number {
  try {
    return countFrom(1)(text);
  } catch (error) {
    throw new UsageError(`PARTS ${text}: ${(error as Error).message}`);
  }
}

function loadOf(args: readonly string[], parts: number) {
  const invocation = parseFlags(loadCommand, args);
  if (invocation === "help") throw new UsageError("a load has no --help in a job");
  const { values, operands, command = [] } = invocation;
  const kind = operands[0];
  if (kind === "http" || kind === "merge" || kind === "job") throw new UsageError(`${kind} is not for a job`);
  for (const name of NOT_OF_A_JOB) {
    const value = values[name];
    const isGiven = Array.isArray(value) ? value.length > 0 : value !== undefined;
    if (isGiven) throw new UsageError(`--${name} is not for the pods of a job`);
  }
  const plan = planOf(values, operands, command);
  partOf(
    { ...values, part: { index: 0, of: parts } },
    plan,
    processesOf({ ...values, part: { index: 0, of: parts } }, plan),
  );
  return {
    plan,
    own: ["--json=-", ...(values.seed === undefined ? [`--seed=${randomBytes(4).readUInt32BE()}`] : [])],
    server: serverFlags(values),
  };
}

/** The pod's server: the Secret's kubeconfig, or a given server with the ServiceAccount's token. */
function serverFlags(values: LoadValues): string[] {
  if (values.server === undefined && values["streaming-url"] === undefined) {
    return values.kubeconfig === undefined ? ["--kubeconfig=/etc/sluice-load/kubeconfig"] : [];
  }
  const isAuthenticated = values["token-file"] !== undefined || values["client-certificate"] !== undefined;
  return isAuthenticated ? [] : [`--token-file=${SERVICE_ACCOUNT_FOLDER}/token`];
}
