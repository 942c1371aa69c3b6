import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import { collect } from "../../support/kubectl.ts";

export type SpecState = "passed" | "failed" | "skipped";

export interface Spec {
  readonly name: string;
  readonly state: SpecState;
  readonly seconds: number;
  /** What went wrong, in the words of the test. */
  readonly failure: string;
}

export interface E2eRun {
  readonly program: string;
  readonly kubectl: string;
  readonly kubeconfig: string;
  /** For the report, which is removed with it. */
  readonly folder: string;
  /** Regular expressions of ginkgo's, of the whole names. */
  readonly focus: readonly string[];
  readonly skip: readonly string[];
}

/** Kubernetes' own tests against one address of a cluster. A test that fails is tried once more. Throws where they could not run. */
export async function runE2e({ program, kubectl, kubeconfig, folder, focus, skip }: E2eRun): Promise<Spec[]> {
  const report = path.join(folder, `${path.basename(kubeconfig)}.report.json`);
  const args = [
    `--kubeconfig=${kubeconfig}`,
    "--provider=local",
    `--kubectl-path=${kubectl}`,
    ...focus.map((pattern) => `--ginkgo.focus=${pattern}`),
    ...skip.map((pattern) => `--ginkgo.skip=${pattern}`),
    "--ginkgo.flake-attempts=2",
    "--ginkgo.no-color",
    "--ginkgo.timeout=40m",
    `--ginkgo.json-report=${report}`,
    "--allowed-not-ready-nodes=0",
    "--minStartupPods=0",
    "--node-schedulable-timeout=30s",
    "--disable-log-dump",
  ];
  const child = spawn("nice", ["-n", "10", program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: folder,
  });
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  await once(child, "close");
  const specs = specsOf(readReport(report, () => `${stdout()}\n${stderr()}`));
  if (specs.length === 0) throw new Error(`no test ran: ${stdout().slice(-2_000)}`);
  return specs;
}

interface Report {
  readonly SpecReports: readonly {
    readonly ContainerHierarchyTexts: readonly string[] | null;
    readonly LeafNodeType: string;
    readonly LeafNodeText: string;
    readonly State: string;
    readonly RunTime: number;
    readonly Failure?: { readonly Message: string };
  }[];
}

function readReport(file: string, output: () => string): readonly Report[] {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Error(`e2e.test wrote no report: ${output().slice(-2_000)}`, { cause: error });
  }
}

function specsOf(reports: readonly Report[]): Spec[] {
  return reports
    .flatMap((report) => report.SpecReports)
    .filter((spec) => spec.LeafNodeType === "It" && spec.State !== "skipped" && spec.State !== "pending")
    .map((spec) => ({
      name: [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(" "),
      state: spec.State === "passed" ? ("passed" as const) : ("failed" as const),
      seconds: spec.RunTime / 1e9,
      failure: spec.Failure?.Message ?? "",
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
