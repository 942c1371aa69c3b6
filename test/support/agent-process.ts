import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { sluiceCommand } from "./built-program.ts";
import { eventually } from "./eventually.ts";
import { collect } from "./kubectl.ts";
import { type MetricSamples, readMetricsOf } from "./taken-path.ts";

export interface AgentProcess {
  /** The kubeconfig that the agent wrote. */
  readonly kubeconfig: string;
  /** What the agent has printed on stderr so far. */
  said(): string;
  readMetrics(): Promise<MetricSamples>;
  /** Stops the agent. Throws if it had to be killed or did not exit with 0. */
  stop(): Promise<void>;
}

/** An API server and the agent's credentials, or the path of a kubeconfig that has both. */
export type AgentUpstreamAccess =
  | {
      readonly server: string;
      /** PEM; absent: plain HTTP. */
      readonly authority?: string;
      readonly token: string;
    }
  | { readonly kubeconfig: string };

/** Starts `sluice agent` as its users do. */
export async function startAgentProcess(
  upstream: AgentUpstreamAccess,
  flags: readonly string[] = [],
): Promise<AgentProcess> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-agent-process-"));
  const own = "kubeconfig" in upstream ? upstream.kubeconfig : path.join(folder, "own-kubeconfig");
  if ("server" in upstream) writeFileSync(own, kubeconfigText(upstream), { mode: 0o600 });
  const args = [
    "agent",
    "--kubeconfig",
    own,
    "--dir",
    path.join(folder, "agent"),
    "--admin-port",
    "0",
    ...flags,
  ];
  const agent = spawn(...sluiceCommand(...args), { stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr] = [collect(agent.stdout), collect(agent.stderr)];
  const closed = once(agent, "close");
  const stop = async (): Promise<void> => {
    agent.kill("SIGTERM");
    const timer = setTimeout(() => agent.kill("SIGKILL"), 15_000);
    const [exitCode] = await closed;
    clearTimeout(timer);
    rmSync(folder, { recursive: true, force: true });
    if (exitCode !== 0)
      throw new Error(`the agent ended with ${exitCode ?? agent.signalCode}: ${stderr().slice(-2_000)}`);
  };
  try {
    const [kubeconfig, adminUrl] = await eventually(
      () => `the agent is ready; it said ${stdout()} ${stderr()}`,
      () => {
        const [file, url] = [/^ready (.+)$/m.exec(stdout())?.[1], /metrics: (\S+)/.exec(stderr())?.[1]];
        return file === undefined || url === undefined ? undefined : ([file, url] as const);
      },
      { timeoutMs: 20_000 },
    );
    return {
      kubeconfig,
      said: stderr,
      readMetrics: () => readMetricsOf(adminUrl),
      stop,
    };
  } catch (error) {
    await stop().catch(() => {});
    throw error;
  }
}

function kubeconfigText({
  server,
  authority,
  token,
}: Extract<AgentUpstreamAccess, { server: string }>): string {
  const ca = authority && { "certificate-authority-data": Buffer.from(authority).toString("base64") };
  return JSON.stringify({
    "current-context": "own",
    clusters: [{ name: "own", cluster: { server, ...ca } }],
    users: [{ name: "own", user: { token } }],
    contexts: [{ name: "own", context: { cluster: "own", user: "own", namespace: "default" } }],
  });
}
