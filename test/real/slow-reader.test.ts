import { afterAll, beforeAll, expect, it } from "vitest";
import { Target } from "../../packages/client/src/index.ts";
import { apiServerEndpoint, kubeletEndpoint } from "../../packages/lab/src/conformance/index.ts";
import { conformanceFlags } from "../../src/cli/commands/conformance.ts";
import { openEndpoint } from "../../src/cli/conformance/conformance-endpoint.ts";
import { parseFlags } from "../../src/cli/parse-flags.ts";
import { ECHO_POD, runEchoPod, serveEcho } from "../support/conformance/echo-pod.ts";
import {
  losses,
  publishSlowRows,
  readSlowly,
  refusedPaths,
  SESSIONS,
  type SlowRow,
} from "../support/conformance/slow-readers.ts";
import { type NodeGateway, startNodeGateway } from "../support/node-gateway.ts";
import { describeReal, isFullRun } from "../support/real-parts.ts";
import { describeEachContainerd } from "./containerd/each-containerd.ts";

const RUN_MS = isFullRun ? 3_600_000 : 600_000;
/** Sessions of each path in full runs. containerd's own server is tried for comparison. */
const [OURS, THEIRS] = [SESSIONS, Math.ceil(SESSIONS / 2)];

describeReal("containerd", "slow readers of containers' output", () => {
  describeEachContainerd((running, { version, isInstalled }) => {
    let gateway: NodeGateway;
    let stopEcho: () => Promise<void>;
    const rows: SlowRow[] = [];

    beforeAll(async () => {
      const containerd = running();
      if (containerd === undefined || !(isFullRun || isInstalled)) return;
      await runEchoPod(containerd);
      stopEcho = await serveEcho(containerd.cri);
      const pods = [{ name: ECHO_POD.pod, container: ECHO_POD.container }];
      gateway = await startNodeGateway({ socket: containerd.socket, pods, legs: "two processes" });
    });
    afterAll(async () => {
      await gateway?.stop();
      await stopEcho?.();
      if (rows.length === 0) return;
      const command = `SLUICE_WRITE_DOCS=1 SLUICE_SESSIONS=${SESSIONS} npx vitest run --project real test/real/slow-reader.test.ts`;
      publishSlowRows(`Before containerd ${version}`, command, rows);
    });

    it("are measured with containerd's own server", { timeout: RUN_MS }, async ({ skip }) => {
      skip(!isFullRun, "SLUICE_FULL=1");
      const args = ["--pod", "default/echo/main", "--runtime-endpoint", `unix://${running()?.socket}`];
      const invocation = parseFlags({ flags: conformanceFlags }, args);
      if (invocation === "help") throw new Error("help was not asked for");
      const { endpoint, close } = await openEndpoint(invocation.values);
      try {
        rows.push(...(await readSlowly({ server: `containerd ${version}`, endpoint, runs: THEIRS })));
      } finally {
        close?.();
      }
    });

    it("lose nothing behind Sluice as the node", { timeout: RUN_MS }, async ({ skip }) => {
      skip(!isFullRun && !isInstalled, "SLUICE_FULL=1");
      const { cert: certificate, key, ca } = gateway.client;
      const target = new Target({ url: gateway.kubeletUrl, tls: { ca, certificate, key }, proxy: "none" });
      const endpoint = kubeletEndpoint(target, ECHO_POD);
      const ours = await readSlowly({ server: "Sluice as the node", endpoint, runs: OURS });
      rows.push(...ours);
      expect(losses(ours)).toEqual([]);
      expect(refusedPaths(ours)).toEqual([]);
    });

    it("lose nothing behind the gateway and Sluice as the node", { timeout: RUN_MS }, async ({ skip }) => {
      skip(!isFullRun, "SLUICE_FULL=1");
      const headers = [["authorization", `Bearer ${gateway.token}`]] as const;
      const tls = { insecureSkipVerify: true };
      const target = new Target({ url: gateway.apiServerUrl, tls, proxy: "none", headers: () => headers });
      const server = "Sluice's gateway before Sluice as the node";
      const ours = await readSlowly({ server, endpoint: apiServerEndpoint(target, ECHO_POD), runs: OURS });
      rows.push(...ours);
      expect(losses(ours)).toEqual([]);
      expect(refusedPaths(ours)).toEqual([]);
    });
  });
});
