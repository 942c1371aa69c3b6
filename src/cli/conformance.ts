import { writeFile } from "node:fs/promises";
import {
  ALL_CASES,
  apiServerEndpoint,
  type CaseReport,
  type ConformanceCase,
  type Endpoint,
  hasFailed,
  kubeletEndpoint,
  runConformance,
  textReport,
} from "../conformance/index.ts";
import { openConformanceView } from "./conformance-view.ts";
import { helpText, parseFlags, terminationSignal } from "./flags.ts";
import { openTarget, type TargetFlags, targetSpecOf } from "./load-target.ts";
import { UsageError } from "./usage-error.ts";

const OPTIONS = {
  pod: { type: "string" },
  kubeconfig: { type: "string" },
  context: { type: "string" },
  server: { type: "string" },
  kubelet: { type: "string" },
  token: { type: "string" },
  "token-file": { type: "string" },
  "certificate-authority": { type: "string" },
  "client-certificate": { type: "string" },
  "client-key": { type: "string" },
  "insecure-skip-tls-verify": { type: "boolean", default: false },
  only: { type: "string", multiple: true },
  list: { type: "boolean", default: false },
  json: { type: "string" },
  help: { type: "boolean", short: "h", default: false },
} as const;

const HELP = helpText("sluice conformance --pod NAMESPACE/NAME[/CONTAINER] [flags]", [
  ["--pod NAMESPACE/NAME[/CONTAINER]", "the one pod that is used; its container needs sh, cat and seq"],
  ["--kubeconfig FILE, --context NAME", "the API server, as kubectl finds it"],
  ["--server URL", "instead: the URL of an API server, or of what is in front of one"],
  ["--kubelet URL", "instead: the URL of a kubelet; --pod needs its container"],
  ["--token, --token-file, --certificate-authority,", "with --server and --kubelet"],
  ["--client-certificate, --client-key, --insecure-skip-tls-verify", ""],
  ["--only PREFIX", "cases whose id begins so, e.g. exec or exec/binary; repeatable"],
  ["--list", "list the cases, and run none"],
  ["--json FILE", "write a report; `-` is stdout"],
]);

type Values = ReturnType<typeof parseFlags<{ args: string[]; options: typeof OPTIONS }>>["values"];

/** Tries an endpoint against the requirements of Kubernetes' streams. Exit code 1 when a case of severity "must" failed. */
export async function run(args: string[]): Promise<number> {
  const { values } = parseFlags({ args, options: OPTIONS });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const cases = casesOf(values.only);
  if (values.list) {
    for (const { id, severity, requirement } of cases)
      process.stdout.write(`${id}  ${severity}  ${requirement}\n`);
    return 0;
  }
  const endpoint = await endpointOf(values);
  const interrupted = new AbortController();
  void terminationSignal().then(() => interrupted.abort());
  const view = openConformanceView(cases.length);
  const report = await runConformance(endpoint, {
    cases,
    signal: interrupted.signal,
    onCase: (one: CaseReport, done: number) => view.update(one, done),
  });
  view.stop();
  (values.json === "-" ? process.stderr : process.stdout).write(textReport(report));
  if (values.json !== undefined) await write(values.json, `${JSON.stringify(report, null, 1)}\n`);
  return hasFailed(report) || report.counts.passed === 0 ? 1 : 0;
}

function casesOf(only: readonly string[] | undefined): readonly ConformanceCase[] {
  if (only === undefined) return ALL_CASES;
  const unknown = only.find((prefix) => !ALL_CASES.some(({ id }) => id.startsWith(prefix)));
  if (unknown !== undefined) throw new UsageError(`--only ${unknown}: no case begins so; see --list`);
  return ALL_CASES.filter(({ id }) => only.some((prefix) => id.startsWith(prefix)));
}

async function endpointOf(values: Values): Promise<Endpoint> {
  const [namespace = "", name = "", container, ...rest] = (values.pod ?? "").split("/");
  if (namespace === "" || name === "" || container === "" || rest.length > 0)
    throw new UsageError(
      `--pod ${values.pod ?? ""}: must be NAMESPACE/NAME or NAMESPACE/NAME/CONTAINER\n\n${HELP}`,
    );
  const flags: TargetFlags = { ...values, server: values.kubelet ?? values.server };
  const target = await openTarget(await targetSpecOf(flags));
  if (values.kubelet === undefined) return apiServerEndpoint(target, { namespace, pod: name, container });
  if (container === undefined) throw new UsageError("--kubelet: --pod needs its container");
  return kubeletEndpoint(target, { namespace, pod: name, container });
}

async function write(file: string, text: string): Promise<void> {
  if (file === "-") process.stdout.write(text);
  else await writeFile(file, text);
}
