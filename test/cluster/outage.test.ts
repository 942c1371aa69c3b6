import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { sluiceCommand } from "../support/built-program.ts";
import { eventually } from "../support/eventually.ts";
import { describeReal } from "../support/real-parts.ts";
import { type ServedGateway, serveGateway } from "../support/served-gateway.ts";
import { gatewayConfiguration } from "./door-configurations.ts";
import { type Doors, openDoors } from "./doors.ts";
import { ADDRESSES, certificateOf, kubeconfigText } from "./kubernetes/credentials.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

describeReal("cluster", "sessions while the API server is away", () => {
  const sockets = new Set<Socket>();
  let cluster: ClusterAddresses;
  let folder: string;
  let kubeconfig: string;
  let doors: Doors;
  let way: Server;
  let gateway: ServedGateway;

  beforeAll(async () => {
    cluster = inject("cluster") as ClusterAddresses;
    folder = mkdtempSync(path.join(tmpdir(), "sluice-outage-"));
    // For the gateway's rights.
    doors = await openDoors(cluster, ["straight"]);
    const { hostname, port } = new URL(cluster.url);
    way = createServer((client) => {
      const server = connect(Number(port), hostname);
      for (const socket of [client, server]) {
        sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          sockets.delete(socket);
          client.destroy();
          server.destroy();
        });
      }
      client.pipe(server).pipe(client);
    });
    way.listen(0, ADDRESSES.controlPlane);
    await once(way, "listening");
    const { port: wayPort } = way.address() as AddressInfo;
    const write = (name: string, text: string): string => {
      const file = path.join(folder, name);
      writeFileSync(file, text, { mode: 0o600 });
      return file;
    };
    const own = kubeconfigText(
      `https://${ADDRESSES.controlPlane}:${wayPort}`,
      cluster.credentials,
      certificateOf("sluice", cluster.credentials),
    );
    const configuration = {
      ...gatewayConfiguration(cluster, "gateway"),
      cluster: { kubeconfig: write("own", own), forwardAs: "impersonate", maxStateAge: "40s" },
    };
    gateway = await serveGateway(write("gateway.json", JSON.stringify(configuration)));
    const alice = certificateOf("alice", cluster.credentials);
    kubeconfig = write("alice", kubeconfigText(`https://${gateway.authority}`, cluster.credentials, alice));
  });
  afterAll(async () => {
    await gateway?.stop();
    way?.close();
    for (const socket of sockets) socket.destroy();
    await doors?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const output = async (program: string, args: readonly string[]) => {
    const { stdout, stderr } = await promisify(execFile)(program, args).catch(
      (error: { stdout: string; stderr: string }) => error,
    );
    return { stdout, stderr };
  };
  const command = ["web", "-c", "main", "--", "echo", "hello"];
  const kubectlExec = () =>
    output(path.join(cluster.programs, "kubectl"), ["--kubeconfig", kubeconfig, "exec", ...command]);
  const sluiceExec = () => output(...sluiceCommand("exec", "--kubeconfig", kubeconfig, ...command));
  const works = () =>
    eventually("exec works", async () => {
      const { stdout, stderr } = await kubectlExec();
      return stdout === "hello\n" && stderr === "";
    });

  it("are opened by what is known, with a warning, until that is too old", { timeout: 180_000 }, async () => {
    // kubectl keeps what discovery said, and the kubelet what the API server decided about us.
    await works();
    const { port } = way.address() as AddressInfo;
    way.close();
    for (const socket of sockets) socket.destroy();
    const known = await kubectlExec();
    expect(known.stdout).toBe("hello\n");
    expect(known.stderr).toMatch(
      /^Warning: the API server is away: this is what Sluice knew of the pod at 20\S+Z/,
    );
    expect((await sluiceExec()).stdout).toBe("hello\n");
    const tooOld = /last heard at 20\S+Z, longer ago than the 40s of cluster\.maxStateAge/;
    await eventually("it is too old", async () => tooOld.test((await kubectlExec()).stderr), {
      timeoutMs: 70_000,
    });
    expect((await sluiceExec()).stderr).toMatch(tooOld);
    way.listen(port, ADDRESSES.controlPlane);
    await once(way, "listening");
    await eventually("exec works again", async () => (await kubectlExec()).stdout === "hello\n", {
      timeoutMs: 60_000,
    });
  });

  it("are opened by what is known although the API server hangs", { timeout: 180_000 }, async () => {
    await works();
    // After the test before, what waits longest to ask again may be webhooks: a session goes through the API server until they are known.
    const isFresh = async () => {
      const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
      const staleSeconds = [...metrics.matchAll(/^sluice_cluster_stale_seconds\{.*\} (\S+)$/gm)];
      return staleSeconds.length > 0 && staleSeconds.every(([, seconds]) => seconds === "0");
    };
    await eventually("all that is followed is fresh", isFresh, { timeoutMs: 60_000 });
    const { apiserver = 0 } = cluster.pids;
    process.kill(apiserver, "SIGSTOP");
    try {
      const { stdout, stderr } = await kubectlExec();
      expect([stdout, stderr]).toEqual([
        "hello\n",
        expect.stringContaining("Warning: the API server is away"),
      ]);
      expect((await sluiceExec()).stdout).toBe("hello\n");
    } finally {
      process.kill(apiserver, "SIGCONT");
    }
    await works();
  });
});
