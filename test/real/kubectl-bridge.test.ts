import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
  checkTerminal,
} from "../support/kubectl-checks.ts";
import { describeReal, kubectlSample, kubectls } from "../support/real-parts.ts";
import { pathTakenBy } from "../support/taken-path.ts";
import type { TestGateway } from "../support/test-gateway.ts";
import { HOP_POD, startBehindWebSocketHop } from "../support/websocket-hop.ts";

const MIB = 1024 * 1024;

/** `webSocketSince`: the first minor release of kubectl that comes over WebSocket unless told otherwise. */
const checks = [
  { name: "exec, piped stdin, exit code 7", webSocketSince: 30, run: checkExec },
  { name: "exec -it with resize", webSocketSince: 30, run: checkTerminal },
  { name: "attach", webSocketSince: 30, run: checkAttach },
  {
    name: "cp in and out",
    webSocketSince: 30,
    run: (runner: KubectlRunner, pod: Parameters<typeof checkCopy>[1]) => checkCopy(runner, pod, 32 * MIB),
  },
  {
    name: "port-forward, 200 requests by 20",
    webSocketSince: 31,
    run: (runner: KubectlRunner, pod: Parameters<typeof checkPortForward>[1]) =>
      checkPortForward(runner, pod),
  },
];

const sample = () => {
  const of31 = kubectls().filter(({ minor }) => minor === 31);
  return [...new Set([...kubectlSample(), ...of31])];
};

describeReal(["kubectl", "haproxy"], "kubectl to a node behind a hop that refuses SPDY", () => {
  let gateway: TestGateway;
  let podFolder: string;

  beforeAll(async () => {
    podFolder = mkdtempSync(path.join(tmpdir(), "sluice-pod-"));
    gateway = await startBehindWebSocketHop();
  });
  afterAll(async () => {
    await gateway?.stop();
    rmSync(podFolder, { recursive: true, force: true });
  });

  describe.each(sample())("$version", (kubectl) => {
    let runner: KubectlRunner;
    beforeAll(() => {
      runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfig });
    });
    afterAll(() => runner?.remove());

    it.each(checks)("$name", { timeout: 400_000 }, async ({ webSocketSince, run }) => {
      const pod = { ...HOP_POD, folder: podFolder, httpPort: 80 };
      const taken = await pathTakenBy(gateway.readMetrics, () => run(runner, pod));
      const way = kubectl.minor >= webSocketSince ? "WebSocket pass-through" : "SPDY bridge";
      expect(taken).toEqual({ ways: [way], refusals: [] });
    });
  });
});
