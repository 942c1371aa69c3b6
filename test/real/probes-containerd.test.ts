import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { runCommand } from "../../src/cli/command-line.ts";
import { ClusterStore } from "../../src/cluster/cluster-store.ts";
import { parseManifests } from "../../src/cluster/manifests.ts";
import { parseConfiguration } from "../../src/config/configuration.ts";
import { CONTAINER_STATE, CriRuntime } from "../../src/cri/cri-runtime.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import { buildProbes } from "../../src/probes/component.ts";
import { commandsIn } from "../../src/probes/container-runtime.ts";
import { runProbe } from "../../src/probes/run-probe.ts";
import { eventually } from "../support/eventually.ts";
import { defaultLocateOptions } from "../support/locate-options.ts";
import { containerds, describeReal } from "../support/real-parts.ts";
import { type RunningContainerd, startContainerd } from "./containerd/start-containerd.ts";
import { runWebPod, webPod } from "./containerd/web-pod.ts";

async function runProbeCommand(...args: string[]): Promise<{ code: number; text: string }> {
  const written: string[] = [];
  const write = vi
    .spyOn(process.stdout, "write")
    .mockImplementation((chunk) => written.push(String(chunk)) > 0);
  try {
    return { code: await runCommand("probe", args), text: written.join("") };
  } finally {
    write.mockRestore();
  }
}

describeReal("containerd", "exec probes by containerd", () => {
  const [binaries] = containerds();
  describe(`containerd ${binaries?.version}`, () => {
    let containerd: RunningContainerd;
    let runtime: CriRuntime;
    let containerId: string;

    beforeAll(async () => {
      if (binaries === undefined) throw new Error("there is no containerd");
      containerd = await startContainerd(binaries);
      containerId = (await runWebPod(containerd)).containers[webPod.container] ?? "";
      runtime = await CriRuntime.open({
        endpoint: `unix://${containerd.socket}`,
        callTimeoutMs: 10_000,
        maxMessageBytes: 32 * 1024 * 1024,
      });
    });
    afterAll(async () => {
      runtime?.close();
      await containerd?.stop();
    });

    const probe = (command: readonly string[], timeoutMs = 5_000) =>
      runProbe(
        { exec: { command } },
        { host: "", containerPorts: [], runCommand: commandsIn(runtime, `containerd://${containerId}`) },
        {
          timeoutMs,
          userAgentVersion: "1.36",
          gates: { H2CContainerProbe: false, GRPCContainerProbeTLS: false },
        },
      );

    it("exit codes, output of both streams, time-outs, and what the runtime can not do", async () => {
      expect(await probe(["sh", "-c", "echo out; echo err >&2"])).toMatchObject({
        result: "Success",
        message: "out\nerr\n",
      });
      expect(await probe(["sh", "-c", "echo no; exit 3"])).toMatchObject({
        result: "Failure",
        message: "no\n",
      });
      expect(await probe(["sleep", "10"], 1_000)).toMatchObject({
        result: "Failure",
        message: 'command "sleep 10" timed out',
      });
      const missing = await probe(["/no/such/program"]);
      expect(missing).toMatchObject({
        result: "Unknown",
        error: expect.stringMatching(/^rpc error: code = /),
      });
      const large = await probe(["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x"]);
      expect(large.message).toBe("x".repeat(10_240));
    });

    it("sluice probe --runtime-endpoint: a pod's exec probe by hand", async () => {
      const folder = mkdtempSync(path.join(tmpdir(), "sluice-probe-exec-"));
      const file = path.join(folder, "pod.yaml");
      writeFileSync(
        file,
        `apiVersion: v1
kind: Pod
metadata: { name: ${webPod.name}, namespace: default }
spec:
  containers:
  - name: ${webPod.container}
    image: web
    env: [{ name: WHAT, value: out }]
    readinessProbe: { exec: { command: [echo, $(WHAT)] } }
    livenessProbe: { exec: { command: [sh, -c, "echo no; exit 3"] } }
    startupProbe: { exec: { command: [sleep, "10"] } }
`,
      );
      const probeOf = (kind: string, socket = containerd.socket) =>
        runProbeCommand("-f", file, "--kind", kind, "--runtime-endpoint", `unix://${socket}`);
      try {
        const ready = await probeOf("readiness");
        expect(ready.code).toBe(0);
        expect(ready.text).toMatch(/Success/);
        expect(ready.text).toMatch(/out/);
        const live = await probeOf("liveness");
        expect(live.code).toBe(1);
        expect(live.text).toMatch(/Failure/);
        const late = await probeOf("startup");
        expect(late.code).toBe(1);
        expect(late.text).toMatch(/command "sleep 10" timed out/);
        const nobody = await probeOf("readiness", path.join(folder, "no-socket"));
        expect(nobody.code).toBe(1);
        expect(nobody.text).toMatch(/cannot be reached/);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

    it("readiness follows a file in the container, and a failed liveness ends it", async () => {
      const configuration = parseConfiguration(
        "apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\npodProbes: { nodeNames: [ours] }\n",
        "gateway.yaml",
      );
      const store = new ClusterStore();
      const manifest = `apiVersion: v1
kind: Pod
metadata: { name: ${webPod.name}, namespace: default }
spec:
  nodeName: ours
  terminationGracePeriodSeconds: 2
  containers:
  - name: ${webPod.container}
    image: web
    env: [{ name: FILE, value: /tmp/ready }]
    readinessProbe: { exec: { command: [cat, $(FILE)] }, periodSeconds: 1, failureThreshold: 1 }
    livenessProbe: { exec: { command: [test, "!", -e, /tmp/sick] }, periodSeconds: 1, failureThreshold: 2 }
`;
      store.replaceAll(parseManifests([{ name: "pod.yaml", text: manifest }]), new Date());
      const logged: string[] = [];
      const log = (_: unknown, message: string) => logged.push(message);
      const probes = await buildProbes(configuration, {
        store,
        node: { nodeName: "ours", runtime },
        nodes: { reportProbe: () => {} },
        kubelet: { ...defaultLocateOptions, endpointOf: async ({ host, port }) => ({ host, port }) },
        metrics: new Metrics(),
        logger: { debug: log, info: log, warn: log, error: log } as never,
      });
      const status = () => store.getPod("default", webPod.name)?.status?.containerStatuses?.[0];
      try {
        await eventually("known by its id, not ready", () => {
          return status()?.containerID === `containerd://${containerId}` && status()?.ready === false;
        });
        await runtime.execSync(containerId, ["touch", "/tmp/ready"], 5);
        await eventually("ready", () => status()?.ready === true);
        await runtime.execSync(containerId, ["rm", "/tmp/ready"], 5);
        await eventually("not ready", () => status()?.ready === false);
        await runtime.execSync(containerId, ["touch", "/tmp/sick"], 5);
        await eventually(
          "ended",
          async () => (await runtime.containerStatus(containerId)).state === CONTAINER_STATE.exited,
          { timeoutMs: 20_000 },
        );
        expect(logged).toContain(`Container ${webPod.container} failed liveness probe, will be restarted`);
        await eventually("seen as terminated", () => status()?.state?.terminated !== undefined);
        expect(status()).toMatchObject({ ready: false, started: false });
      } finally {
        await probes.stop();
      }
    });
  });
});
