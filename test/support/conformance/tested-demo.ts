import { kubeconfigTarget, Target } from "../../../packages/client/src/index.ts";
import { loadKubeconfig } from "../../../packages/client/src/kubernetes/kubeconfig.ts";
import { ALL_CASES } from "../../../packages/lab/src/conformance/all-cases.ts";
import type { ConformanceCase } from "../../../packages/lab/src/conformance/conformance-case.ts";
import type { ConformanceReport } from "../../../packages/lab/src/conformance/conformance-report.ts";
import { apiServerEndpoint } from "../../../packages/lab/src/conformance/endpoint.ts";
import type { LabSettings } from "../../../packages/lab/src/conformance/lab-settings.ts";
import { runConformance } from "../../../packages/lab/src/conformance/run-cases.ts";
import { type RunningDemo, startDemo } from "../demo.ts";
import { type ProxyBehaviour, startBrokenProxy } from "./broken-proxy.ts";

/**
 * Small and quick, because these runs test whether each case judges correctly, and not the
 * endpoint's endurance.
 */
export const quickSettings: Partial<LabSettings> = {
  dialTimeoutMs: 20_000,
  stepTimeoutMs: 20_000,
  caseTimeoutMs: 60_000,
  bulkBytes: 2 * 1024 * 1024,
  slowBytes: 6 * 1024 * 1024,
  slowRate: 6 * 1024 * 1024,
  stallMs: 1_000,
  heartbeatMs: 5_500,
  idleScale: 0.01,
  echoPort: 7,
  mayAttachInput: true,
};

/** A defect may show by a timeout as well as by a wrong answer. */
const defectSettings: Partial<LabSettings> = {
  ...quickSettings,
  stepTimeoutMs: 3_000,
  // On a busy machine a command needs longer to fill a hop's buffers.
  stallMs: 2_000,
  caseTimeoutMs: 15_000,
};

type DemoPod = "web" | "web-ws";

/** Sluice's demo as an endpoint: `web` behind the translator, `web-ws` passed through. */
export class TestedDemo {
  readonly #demo: RunningDemo;

  private constructor(demo: RunningDemo) {
    this.#demo = demo;
  }

  static async start(): Promise<TestedDemo> {
    return new TestedDemo(await startDemo());
  }

  get kubeconfig(): string {
    return this.#demo.kubeconfig;
  }

  /** The API server as a target; the demo has a certificate of its own. */
  async target(): Promise<Target> {
    return kubeconfigTarget(await loadKubeconfig(this.kubeconfig, undefined));
  }

  /** Runs cases against a pod. */
  async run(pod: DemoPod, cases: readonly ConformanceCase[] = ALL_CASES): Promise<ConformanceReport> {
    const target = await this.target();
    const endpoint = apiServerEndpoint(target, { namespace: "default", pod, container: "main" });
    return runConformance(endpoint, { cases, settings: quickSettings });
  }

  /** Runs cases against a pod through a proxy with this defect. */
  async runThrough(
    defect: ProxyBehaviour,
    { pod = "web", cases }: { pod?: DemoPod; cases?: readonly ConformanceCase[] } = {},
  ): Promise<ConformanceReport> {
    const direct = await this.target();
    const proxy = await startBrokenProxy(Number(direct.url.port), defect);
    try {
      const target = new Target({
        url: proxy.url,
        tls: { insecureSkipVerify: true },
        headers: () => direct.headers(),
      });
      const endpoint = apiServerEndpoint(target, { namespace: "default", pod, container: "main" });
      return await runConformance(endpoint, {
        cases: cases ?? ALL_CASES,
        settings: cases === undefined ? quickSettings : defectSettings,
      });
    } finally {
      await proxy.close();
    }
  }

  stop(): Promise<void> {
    return this.#demo.stop();
  }
}

/** The failed and skipped cases, for people and for comparisons. */
export function troubles({ cases }: ConformanceReport): string[] {
  return cases
    .filter(({ verdict }) => verdict !== "passed")
    .map(({ id, verdict, note }) => `${id} ${verdict}: ${note}`);
}
