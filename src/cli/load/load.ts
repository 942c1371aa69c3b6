import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { isLoopback } from "@sluice/client/internal/config/address-list";
import { isSingleBinary } from "@sluice/client/internal/config/version";
import { SERVICE_ACCOUNT_FOLDER } from "@sluice/client/internal/net/in-cluster-server";
import { runInProcesses, serveGenerator } from "@sluice/lab/load/generator-processes";
import { readPlots } from "@sluice/lab/load/html-report";
import { runHttpLoad } from "@sluice/lab/load/http-load";
import type { LoadPlan } from "@sluice/lab/load/load-plan";
import type { LoadCollector } from "@sluice/lab/load/load-report";
import { duration, size } from "@sluice/lab/load/summary-text";
import { HTTP_METRICS, SESSION_METRICS } from "@sluice/lab/load/thresholds";
import cliProgress from "cli-progress";
import { type Invocation, UsageError } from "../command.ts";
import { type LoadValues, command as loadCommand } from "../commands/load.ts";
import { countFrom } from "../flag-readers.ts";
import { parseFlags } from "../parse-flags.ts";
import { checkInstalled, readManifests } from "../setup/install.ts";
import { withTerminationSignal } from "../termination-signal.ts";
import { partOf, planOf } from "./load-plan.ts";
import { httpPlanOf, publish, publishHttp, runMerge, thresholdsOf } from "./load-result.ts";
import { openTarget, targetSpecOf } from "./load-target.ts";

/** The job sets these for each pod. A token would be visible in the Job. */
const NOT_OF_A_JOB = ["part", "start-at", "json", "html", "threshold", "token"] as const;
/**
 * The time from a pod's start to its program's start, and from the program's end to the Job's end.
 */
const MARGIN_SECONDS = 300;

/**
 * Prints the Indexed Job in deploy/kustomize/load with the user's own load. Throws UsageError.
 * `args`: the arguments of `sluice load`.
 */
async function printJob(
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
  if (invocation === "help") throw new UsageError("--help is not for the load of a job");
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

const PLAIN_EVERY_SECONDS = 5;

interface LoadView {
  update(collector: LoadCollector): void;
  stop(): void;
}

/** Progress on stderr: on a terminal one line that is redrawn, elsewhere a line every few seconds. */
function openLoadView({ durationMs }: LoadPlan): LoadView {
  const seconds = Math.ceil(durationMs / 1_000);
  return process.stderr.isTTY ? terminalView(seconds) : plainView(seconds);
}

function terminalView(seconds: number): LoadView {
  const bar = new cliProgress.SingleBar({
    format: "{bar} {value}/{total} s  {line}",
    barsize: 20,
    stream: process.stderr,
    // The command itself handles Ctrl-C: it ends the run with a summary.
    gracefulExit: false,
    hideCursor: true,
  });
  bar.start(seconds, 0, { line: "starting" });
  return {
    update: (collector) =>
      bar.update(Math.min(seconds, collector.latest.second), { line: lineOf(collector) }),
    stop: () => bar.stop(),
  };
}

function plainView(seconds: number): LoadView {
  let shown = 0;
  return {
    update: (collector) => {
      const { second } = collector.latest;
      if (second < shown + PLAIN_EVERY_SECONDS) return;
      shown = second;
      process.stderr.write(`${second}/${seconds} s  ${lineOf(collector)}\n`);
    },
    stop: () => {},
  };
}

function lineOf(collector: LoadCollector): string {
  const { active, sentBytes, receivedBytes } = collector.latest;
  const timed = collector.summaryOf("message");
  const { p50Us, p99Us } = timed.count > 0 ? timed : collector.summaryOf("firstByte");
  return `${active} sessions  up ${size(sentBytes)}/s  down ${size(receivedBytes)}/s  p50 ${duration(p50Us)}  p99 ${duration(p99Us)}  ${collector.failed} failed`;
}

/** Puts a load on a streaming server, or merges the reports of earlier runs. */
export async function run({
  values,
  operands,
  command = [],
}: Invocation<typeof loadCommand.flags>): Promise<number> {
  if (values.generator) {
    await serveGenerator(openTarget);
    // An open channel to the parent process would keep this one alive.
    process.disconnect?.();
    return 0;
  }
  const takesCommand = operands[0] === "exec" || operands[0] === "job";
  if (command.length > 0 && operands[0] !== undefined && !takesCommand)
    throw new UsageError(`unexpected argument ${JSON.stringify(command[0])}: ${operands[0]} runs no command`);
  if (operands[0] === "http") return runHttp(values, operands.slice(1));
  if (operands[0] === "job") return printJob(values, operands.slice(1), command);
  if (operands[0] === "merge") return runMerge(values, operands.slice(1));
  return runSessions(values, operands, command);
}

async function runSessions(
  values: LoadValues,
  operands: readonly string[],
  command: readonly string[],
): Promise<number> {
  // Reports faults of the command line before any file is read.
  planOf(values, operands, command);
  const target = await targetSpecOf(values);
  // Reports a wrong kubeconfig once, before processes start; reports a missing package before the
  // load begins.
  const { hostname } = (await openTarget(target)).url;
  const isOnLoopback = hostname === "localhost" || isLoopback(hostname.replace(/^\[|\]$/g, ""));
  const plan = planOf(values, operands, command, isOnLoopback);
  const processes = processesOf(values, plan);
  const part = partOf(values, plan, processes);
  const thresholds = thresholdsOf(values, SESSION_METRICS);
  if (values.html !== undefined) await readPlots();
  const report = await withTerminationSignal(async (interrupted) => {
    const startAtMs = announcedStart(values);
    const view = openLoadView(plan);
    const finished = await runInProcesses({
      plan,
      processes,
      part,
      startAtMs,
      target,
      start: startGenerator,
      interrupted,
      onProgress: (collector) => view.update(collector),
    });
    view.stop();
    return finished;
  });
  return publish(report, thresholds, values);
}

function announcedStart({ "start-at": startAtMs }: LoadValues): number | undefined {
  if (startAtMs === undefined) return undefined;
  const at = new Date(startAtMs).toISOString();
  const lateSeconds = (Date.now() - startAtMs) / 1_000;
  const notice =
    lateSeconds <= 0 ? `starts at ${at}` : `starts now: ${at} was ${lateSeconds.toFixed(1)} s ago`;
  process.stderr.write(`${notice}\n`);
  return startAtMs;
}

function startGenerator() {
  const [program = ""] = process.argv.slice(1);
  // The single binary starts itself, and its first argument is the command.
  const [file, words] = isSingleBinary ? ["load", []] : [program, ["load"]];
  return fork(file, [...words, "--generator"], {
    serialization: "advanced",
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

async function runHttp(values: LoadValues, operands: readonly string[]): Promise<number> {
  const plan = await httpPlanOf(values, operands, await targetSpecOf(values));
  const thresholds = thresholdsOf(values, HTTP_METRICS);
  const part = values.part ?? { index: 0, of: 1 };
  const report = await withTerminationSignal((interrupted) =>
    runHttpLoad(plan, { part, startAtMs: announcedStart(values), interrupted }),
  );
  return publishHttp(report, thresholds, values);
}

/** A part uses one process, unless all parts get the same number. */
function processesOf({ processes, part }: LoadValues, { sessions }: Pick<LoadPlan, "sessions">): number {
  if (part !== undefined) return processes ?? 1;
  return processes ?? Math.min(sessions, Math.max(1, Math.floor(availableParallelism() / 2)));
}
