import { fork } from "node:child_process";
import { writeFile } from "node:fs/promises";
import {
  htmlReport,
  readPlots,
  runHttpLoad,
  runInProcesses,
  serveGenerator,
  summaryText,
} from "../load/index.ts";
import type { Invocation } from "./command.ts";
import type { LoadValues, loadFlags } from "./commands/load.ts";
import { httpPlanOf, httpSummary } from "./load-http.ts";
import { planOf, processesOf } from "./load-plan.ts";
import { openTarget, targetSpecOf } from "./load-target.ts";
import { openLoadView } from "./load-view.ts";
import { terminationSignal } from "./termination-signal.ts";

/** Loads a streaming server. Exit code 1 when a session failed, or none finished. */
export async function run({ values, operands, command = [] }: Invocation<typeof loadFlags>): Promise<number> {
  if (values.generator) {
    await serveGenerator(openTarget);
    // The channel to the parent would keep the process alive.
    process.disconnect?.();
    return 0;
  }
  return operands[0] === "http" ? runHttp(values, operands.slice(1)) : runSessions(values, operands, command);
}

async function runSessions(
  values: LoadValues,
  operands: readonly string[],
  command: readonly string[],
): Promise<number> {
  const plan = planOf(values, operands, command);
  const target = await targetSpecOf(values);
  // A wrong kubeconfig is reported once, before processes start; a missing package before the load.
  await openTarget(target);
  if (values.html !== undefined) await readPlots();
  const view = openLoadView(plan);
  const report = await runInProcesses({
    plan,
    processes: processesOf(values, plan),
    target,
    start: startGenerator,
    interrupted: terminationSignal(),
    onProgress: (collector) => view.update(collector),
  });
  view.stop();
  const isJsonShown = values.json === "-" || values.html === "-";
  (isJsonShown ? process.stderr : process.stdout).write(summaryText(report));
  await writeReport(values.json, () => `${JSON.stringify(report, null, 1)}\n`);
  await writeReport(values.html, () => htmlReport(report));
  return report.sessions.failed === 0 && report.sessions.finished > 0 ? 0 : 1;
}

function startGenerator() {
  const [program = ""] = process.argv.slice(1);
  return fork(program, ["load", "--generator"], {
    serialization: "advanced",
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

async function runHttp(values: LoadValues, operands: readonly string[]): Promise<number> {
  const plan = await httpPlanOf(values, operands, await targetSpecOf(values));
  const report = await runHttpLoad(plan, terminationSignal());
  (values.json === "-" ? process.stderr : process.stdout).write(httpSummary(report));
  await writeReport(values.json, () => `${JSON.stringify(report, null, 1)}\n`);
  return report.errors + report.timeouts === 0 && report.requests > 0 ? 0 : 1;
}

async function writeReport(file: unknown, text: () => string | Promise<string>): Promise<void> {
  if (typeof file !== "string") return;
  const written = await text();
  if (file === "-") process.stdout.write(written);
  else await writeFile(file, written);
}
