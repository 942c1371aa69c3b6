import { fork } from "node:child_process";
import { isLoopback } from "@sluice/client/internal/config/address-list";
import { isSingleBinary } from "@sluice/client/internal/config/own-files";
import {
  HTTP_METRICS,
  readPlots,
  runHttpLoad,
  runInProcesses,
  SESSION_METRICS,
  serveGenerator,
} from "@sluice/lab/load";
import type { Invocation } from "../command.ts";
import type { LoadValues, loadFlags } from "../commands/load.ts";
import { terminationSignal } from "../termination-signal.ts";
import { UsageError } from "../usage-error.ts";
import { httpPlanOf, publishHttp } from "./load-http.ts";
import { printJob } from "./load-job.ts";
import { runMerge } from "./load-merge.ts";
import { partOf, planOf, processesOf } from "./load-plan.ts";
import { publish, thresholdsOf } from "./load-result.ts";
import { openTarget, targetSpecOf } from "./load-target.ts";
import { openLoadView } from "./load-view.ts";

/** Loads a streaming server, or merges the reports of earlier runs. */
export async function run({ values, operands, command = [] }: Invocation<typeof loadFlags>): Promise<number> {
  if (values.generator) {
    await serveGenerator(openTarget);
    // An open channel to the parent would keep the process alive.
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
  // Reports a wrong kubeconfig once, before processes start, and a missing package before the load.
  const { hostname } = (await openTarget(target)).url;
  const isOnLoopback = hostname === "localhost" || isLoopback(hostname.replace(/^\[|\]$/g, ""));
  const plan = planOf(values, operands, command, isOnLoopback);
  const processes = processesOf(values, plan);
  const part = partOf(values, plan, processes);
  const thresholds = thresholdsOf(values, SESSION_METRICS);
  if (values.html !== undefined) await readPlots();
  const startAtMs = announcedStart(values);
  const view = openLoadView(plan);
  const report = await runInProcesses({
    plan,
    processes,
    part,
    startAtMs,
    target,
    start: startGenerator,
    interrupted: terminationSignal(),
    onProgress: (collector) => view.update(collector),
  });
  view.stop();
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
  const startAtMs = announcedStart(values);
  const part = values.part ?? { index: 0, of: 1 };
  const report = await runHttpLoad(plan, { part, startAtMs, interrupted: terminationSignal() });
  return publishHttp(report, thresholds, values);
}
