import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { sluiceCommand } from "../support/built-program.ts";
import { ComposeProcesses } from "../support/compose-processes.ts";
import { eventually } from "../support/eventually.ts";
import { describeReal, isFullRun } from "../support/real-parts.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

/** `sluice exec`, as a client of the composition. */
async function exec(kubeconfig: string, pod: string): Promise<string> {
  const command = ["exec", pod, "--kubeconfig", kubeconfig, "--", "echo", `hello from ${pod}`];
  return (await run(...sluiceCommand(...command))).stdout;
}

describeReal("nginx", "the services of docker-compose.yml as processes", () => {
  const composition = new ComposeProcesses();
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-composed-"));
    // The last one: it depends on all others but Prometheus.
    await composition.start("nginx");
    // A plain request to its TLS port: 400.
    const url = `http://${composition.addressOf("nginx")}:8443/`;
    const answers = () =>
      fetch(url).then(
        ({ status }) => status === 400,
        () => false,
      );
    await eventually(() => `nginx listens: ${composition.outputOf("nginx")}`, answers, { timeoutMs: 30_000 });
  }, 120_000);
  afterAll(async () => {
    await composition.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(["web", "web-ws"])("carry exec to %s, through nginx and the gateway", async (pod) => {
    // Of the volume, but for the published port.
    const kubeconfig = parse(readFileSync(composition.volumeFile("kubeconfig"), "utf8"));
    const { cluster } = kubeconfig.clusters[0];
    cluster["tls-server-name"] = "localhost";
    cluster.server = `https://${composition.addressOf("nginx")}:8443`;
    const file = path.join(folder, `${pod}.kubeconfig`);
    writeFileSync(file, JSON.stringify(kubeconfig));
    expect(await exec(file, pod)).toBe(`hello from ${pod}\n`);
  });

  it("have metrics where prometheus.yml scrapes them, with both sessions", async () => {
    const {
      scrape_configs: [scrape],
    } = parse(readFileSync(path.join(root, "deploy/docker/prometheus.yml"), "utf8"));
    const [target] = scrape.static_configs[0].targets as string[];
    const [host = "", port] = (target ?? "").split(":");
    const metrics = await fetch(`http://${composition.addressOf(host)}:${port}/metrics`);
    expect(await metrics.text()).toMatch(
      /^sluice_streaming_requests_total\{subresource="exec",plan="\w+",code="101"\} 1$/m,
    );
  });
});

describeReal("docker", "docker-compose.yml under docker compose", () => {
  it.skipIf(!isFullRun)(
    "starts, becomes healthy and carries exec",
    async () => {
      const compose = (...args: string[]) =>
        run("docker", ["compose", ...args], { cwd: root, maxBuffer: 64 * 1024 * 1024 });
      const folder = mkdtempSync(path.join(tmpdir(), "sluice-composed-"));
      try {
        await compose("up", "--build", "--detach", "--wait", "gateway", "nginx");
        const kubeconfig = path.join(folder, "kubeconfig");
        await compose("cp", "gateway:/var/lib/sluice/kubeconfig", kubeconfig);
        for (const pod of ["web", "web-ws"]) expect(await exec(kubeconfig, pod)).toBe(`hello from ${pod}\n`);
      } finally {
        await compose("down", "--volumes");
        rmSync(folder, { recursive: true, force: true });
      }
    },
    900_000,
  );
});
