import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Lease } from "../../../src/api/networking-objects.ts";
import type { Pod } from "../../../src/api/objects.ts";
import { resourceOfKind } from "../../support/api-server/resources.ts";
import { TestApiServer } from "../../support/api-server/test-api-server.ts";
import { publishSection } from "../../support/evidence-sections.ts";
import { GatewayFiles } from "../../support/gateway-files.ts";
import { probedSpec, UNREADY_STATUS } from "../../support/probed-pod.ts";
import { type ServedGateway, serveGateway, shiftedClock } from "../../support/served-gateway.ts";

/** Several processes start for each test, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 120_000, expect: { poll: { timeout: 30_000 } } });

const TEN_MINUTES = 600_000;
const LEASE_MS = 4_000;
const ELECTION = {
  leaseDuration: "4s",
  renewDeadline: "3s",
  retryPeriod: "200ms",
  resourceNamespace: "default",
};

/** Replicas as processes with clocks of their own, one API, and a pod with a readiness probe. */
class ProbedCluster {
  probeStatus = 200;
  readonly server: TestApiServer;
  readonly replicas: ServedGateway[] = [];
  readonly #files = new GatewayFiles();
  readonly #probed = createServer((_, response) => response.writeHead(this.probeStatus).end());

  private constructor(server: TestApiServer) {
    this.server = server;
  }

  static async start(clockShifts: readonly number[], more: object = {}): Promise<ProbedCluster> {
    const cluster = new ProbedCluster(await TestApiServer.start());
    await cluster.#start(clockShifts, more);
    return cluster;
  }

  async #start(clockShifts: readonly number[], more: object): Promise<void> {
    await new Promise<void>((resolve) => this.#probed.listen(0, "127.0.0.1", resolve));
    const { port } = this.#probed.address() as AddressInfo;
    this.server.apply({ apiVersion: "v1", kind: "Node", metadata: { name: "ours" } });
    this.server.apply({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web", namespace: "default", uid: "web" },
      spec: probedSpec(port),
      status: UNREADY_STATUS,
    });
    const kubeconfig = await this.server.writeKubeconfig(path.join(this.#files.folder, "kubeconfig"));
    this.#files.configure({
      timeouts: { shutdownGracePeriod: "0s" },
      configuration: {
        cluster: { kubeconfig },
        podProbes: { nodeNames: ["ours"], threads: 0, leaderElection: ELECTION },
        ...more,
      },
    });
    const serve = (shiftMs: number) =>
      serveGateway(this.#files.configurationFile, { nodeArguments: shiftedClock(shiftMs) });
    this.replicas.push(...(await Promise.all(clockShifts.map(serve))));
  }

  get pod(): Pod {
    return this.server.store.get(resourceOfKind("Pod"), "default", "web") as unknown as Pod;
  }

  get readiness(): string | undefined {
    return this.pod.status?.conditions?.find(({ type }) => type === "Ready")?.status;
  }

  get lease(): Lease {
    const [lease] = this.server.store.list(resourceOfKind("Lease"));
    return lease as unknown as Lease;
  }

  get writes(): number {
    return this.server.requests.filter(
      ({ method, path: at }) => method === "PATCH" && at.endsWith("/web/status"),
    ).length;
  }

  /** Those of the given replicas that probe. */
  async probers(among: readonly ServedGateway[] = this.replicas): Promise<readonly ServedGateway[]> {
    const lists = await Promise.all(
      among.map(
        async ({ adminUrl }) => (await (await fetch(`${adminUrl}/debug/probes`)).json()) as unknown[],
      ),
    );
    return among.filter((_, index) => (lists[index]?.length ?? 0) > 0);
  }

  async theProber(among?: readonly ServedGateway[]): Promise<ServedGateway> {
    await expect.poll(async () => (await this.probers(among)).length).toBe(1);
    return (await this.probers(among))[0] as ServedGateway;
  }

  async stop(): Promise<void> {
    for (const { child } of this.replicas) child.kill("SIGCONT");
    await Promise.all(
      this.replicas.filter(({ child }) => child.signalCode === null).map((replica) => replica.stop()),
    );
    this.#probed.close();
    await this.server.stop();
    this.#files.remove();
  }
}

let cluster: ProbedCluster;
afterEach(() => cluster?.stop());

const others = (replica: ServedGateway) => cluster.replicas.filter((each) => each !== replica);

describe("probes of pods by several replicas", () => {
  it("one probes and writes; killed with -9 it is followed after its Lease, and the pod stays ready meanwhile", async () => {
    cluster = await ProbedCluster.start([TEN_MINUTES, -TEN_MINUTES, 0]);
    const first = await cluster.theProber();
    await expect.poll(() => cluster.readiness).toBe("True");
    expect(cluster.lease.metadata.name).toMatch(/^sluice-probes-[0-9a-f]{10}$/);
    const { holderIdentity } = cluster.lease.spec ?? {};
    const { writes } = cluster;
    first.child.kill("SIGKILL");
    const killedMs = performance.now();
    const second = await cluster.theProber(others(first));
    const tookMs = performance.now() - killedMs;
    expect(tookMs).toBeGreaterThan(LEASE_MS - 1_000);
    expect(cluster.lease.spec?.holderIdentity).not.toBe(holderIdentity);
    // Nothing was written meanwhile, nor by the successor, whose results are the same.
    expect([cluster.readiness, cluster.writes]).toEqual(["True", writes]);
    cluster.probeStatus = 500;
    await expect.poll(() => cluster.readiness).toBe("False");
    expect(await cluster.probers(others(first))).toEqual([second]);
    expect(cluster.writes).toBe(writes + 1);
    publishSection(
      "replicas.md",
      "One prober of pods",
      `Written by \`SLUICE_WRITE_DOCS=1 npx vitest run test/integration/probes/elected-prober\`: three processes,
their clocks +10 minutes, -10 minutes and right; a Lease of ${LEASE_MS / 1_000} s, tried for every 0.2 s.

| what | expected | observed |
|---|---|---|
| the prober killed with -9 | another one after the Lease, ${LEASE_MS / 1_000} s | after ${(tookMs / 1_000).toFixed(1)} s |
| the pod meanwhile | ready, and no write | ready, 0 writes |
| the pod fails afterwards | one write, by the successor | 1 write |`,
    );
  });

  it("one that stood still past its Lease writes nothing more; one that stops hands over at once", async () => {
    cluster = await ProbedCluster.start([TEN_MINUTES, -TEN_MINUTES]);
    const first = await cluster.theProber();
    await expect.poll(() => cluster.readiness).toBe("True");
    first.child.kill("SIGSTOP");
    const second = await cluster.theProber(others(first));
    cluster.probeStatus = 500;
    await expect.poll(() => cluster.readiness).toBe("False");
    const { writes } = cluster;
    first.child.kill("SIGCONT");
    await expect.poll(() => first.log()).toContain("another gateway may probe pods");
    expect(await cluster.probers()).toEqual([second]);
    expect(cluster.writes).toBe(writes);
    const { holderIdentity } = cluster.lease.spec ?? {};
    await second.stop();
    await cluster.theProber(others(second));
    expect(cluster.lease.spec?.holderIdentity).not.toBe(holderIdentity);
    expect(cluster.readiness).toBe("False");
  });

  it("with workers, a worker that takes over from a killed one does not wait for the Lease of its replica", async () => {
    cluster = await ProbedCluster.start([0, 0], { workers: 2 });
    const prober = await cluster.theProber();
    const { leaseTransitions } = cluster.lease.spec ?? {};
    const isProber = (line: { readonly msg: string }) => line.msg === "this process is the prober";
    const [{ pid } = {}] = prober.logLines().filter(isProber) as unknown as { pid?: number }[];
    if (pid === undefined) throw new Error("no process has become the prober");
    process.kill(pid, "SIGKILL");
    await expect.poll(() => prober.logLines().filter(isProber).length).toBe(2);
    expect(await cluster.theProber()).toBe(prober);
    expect(cluster.lease.spec?.leaseTransitions).toBe(leaseTransitions);
    cluster.probeStatus = 500;
    await expect.poll(() => cluster.readiness).toBe("False");
  });
});
