import { afterAll, beforeAll, expect, it } from "vitest";
import { Target } from "../../packages/client/src/index.ts";
import {
  apiServerEndpoint,
  type Endpoint,
  kubeletEndpoint,
} from "../../packages/lab/src/conformance/endpoint.ts";
import { command } from "../../src/cli/commands/conformance.ts";
import { openEndpoint } from "../../src/cli/conformance/conformance.ts";
import { parseFlags } from "../../src/cli/parse-flags.ts";
import { ECHO_POD, runEchoPod, serveEcho } from "../support/conformance/echo-pod.ts";
import {
  losses,
  PEER_SESSIONS,
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
    });

    async function read(server: string, endpoint: Endpoint, runs: number): Promise<SlowRow[]> {
      const read = await readSlowly({ server, endpoint, runs });
      rows.push(...read);
      // After each server: a run of an hour that is broken off keeps the rows that it finished.
      publishSlowRows(`Before containerd ${version}`, version, rows);
      return read;
    }

    it("are measured with containerd's own server", { timeout: RUN_MS }, async ({ skip }) => {
      skip(!isFullRun, "SLUICE_FULL=1");
      const args = ["--pod", "default/echo/main", "--runtime-endpoint", `unix://${running()?.socket}`];
      const invocation = parseFlags(command, args);
      if (invocation === "help") throw new Error("help was not asked for");
      const { endpoint, close } = await openEndpoint(invocation.values);
      try {
        await read(`containerd ${version}`, endpoint, PEER_SESSIONS);
      } finally {
        close?.();
      }
    });

    it("lose nothing behind Sluice as the node", { timeout: RUN_MS }, async ({ skip }) => {
      skip(!isFullRun && !isInstalled, "SLUICE_FULL=1");
      const { cert: certificate, key, ca } = gateway.client;
      const target = new Target({ url: gateway.kubeletUrl, tls: { ca, certificate, key }, proxy: "none" });
      const endpoint = kubeletEndpoint(target, ECHO_POD);
      const ours = await read("Sluice as the node", endpoint, SESSIONS);
      expect(losses(ours)).toEqual([]);
      expect(refusedPaths(ours)).toEqual([]);
    });

    it("lose nothing behind the gateway and Sluice as the node", { timeout: RUN_MS }, async ({ skip }) => {
      skip(!isFullRun, "SLUICE_FULL=1");
      const headers = [["authorization", `Bearer ${gateway.token}`]] as const;
      const tls = { insecureSkipVerify: true };
      const target = new Target({ url: gateway.apiServerUrl, tls, proxy: "none", headers: () => headers });
      const server = "Sluice's gateway before Sluice as the node";
      const ours = await read(server, apiServerEndpoint(target, ECHO_POD), SESSIONS);
      expect(losses(ours)).toEqual([]);
      expect(refusedPaths(ours)).toEqual([]);
    });
  });
});
