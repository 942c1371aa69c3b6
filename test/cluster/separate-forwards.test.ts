import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { ECHO_POD, ECHO_PORT, serveEcho } from "../support/conformance/echo-pod.ts";
import { CriClient } from "../support/cri.ts";
import { eventually } from "../support/eventually.ts";
import { collect } from "../support/kubectl.ts";
import { describeReal } from "../support/real-parts.ts";
import { startEchoPod } from "./cluster-endpoints.ts";
import { type DoorName, type Doors, openDoors } from "./doors.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

/** Where nothing listens: the kubelet's refusal is what kubectl ends at. */
const CLOSED_PORT = 9;
const CONNECTIONS = 500;
const REFUSED_EACH = 10;
const CONNECTION_TIMEOUT_MS = 30_000;

describeReal(
  "cluster",
  "a port-forward through a real kubelet, of which 10 % of the connections are refused",
  () => {
    const cluster = inject("cluster") as ClusterAddresses;
    let opened: Doors;
    let stopEcho: (() => Promise<void>) | undefined;

    beforeAll(async () => {
      opened = await openDoors(cluster, ["straight", "separate"]);
      await startEchoPod(cluster);
      const cri = new CriClient(cluster.runtimeSocket);
      stopEcho = await serveEcho(cri).finally(() => cri.close());
    });
    afterAll(async () => {
      await stopEcho?.();
      await opened?.stop();
    });

    /** How a connection that asks for an echo comes to its end. */
    async function outcome(port: number | undefined): Promise<string> {
      const socket = connect({ port: port ?? 0, host: "127.0.0.1", timeout: CONNECTION_TIMEOUT_MS });
      socket.write("here");
      const came = await new Promise<string>((resolve) => {
        for (const event of ["data", "error", "close", "timeout"]) socket.once(event, () => resolve(event));
      });
      socket.destroy();
      return came === "error" ? "close" : came;
    }

    /** How many connections of the first so many came to their end while kubectl lived. */
    async function carried(name: DoorName): Promise<number> {
      const door = opened.doors.find((one) => one.name === name);
      const { kubeconfig } = (await door?.access("alice")) ?? {};
      const ports = [ECHO_PORT, CLOSED_PORT].map((port) => `:${port}`);
      const kubectl = path.join(cluster.programs, "kubectl");
      const args = ["--kubeconfig", `${kubeconfig}`, "port-forward", "--address", "127.0.0.1", ECHO_POD.pod];
      const forward = spawn(kubectl, [...args, ...ports], { stdio: ["ignore", "pipe", "pipe"] });
      const closed = once(forward, "close");
      const [stdout, stderr] = [collect(forward.stdout), collect(forward.stderr)];
      try {
        const local = (remote: number): number | undefined => {
          const match = new RegExp(`:(\\d+) -> ${remote}\\n`).exec(stdout());
          return match === null ? undefined : Number(match[1]);
        };
        const says = () => `kubectl listens for both ports: ${stderr()}`;
        await eventually(says, () => local(CLOSED_PORT) !== undefined, { timeoutMs: 30_000 });
        let count = 0;
        for (; count < CONNECTIONS && forward.exitCode === null; count += 1) {
          const isRefused = count % REFUSED_EACH === 5;
          const came = await outcome(local(isRefused ? CLOSED_PORT : ECHO_PORT));
          if (came !== (isRefused ? "close" : "data")) break;
        }
        return count;
      } finally {
        forward.kill();
        await closed;
      }
    }

    it("ends within 10 of them straight", { timeout: 90_000 }, async () => {
      expect(await carried("straight")).toBeLessThan(10);
    });

    it("goes on through Sluice with connections of their own", { timeout: 120_000 }, async () => {
      expect(await carried("separate")).toBe(CONNECTIONS);
    });
  },
);
