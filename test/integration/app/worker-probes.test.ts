import { Agent, createServer, get, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { WorkerGateway } from "../../support/worker-gateway.ts";

const WORKERS = 3;
const AT_START_READY = "ready: true";

let gateway: WorkerGateway;
let backend: CountingBackend;
const agents: Agent[] = [];
/** Four processes start for each test, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 90_000, expect: { poll: { timeout: 30_000 } } });
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.destroy();
  await gateway.stop();
  await backend.close();
});

/** Serves what Ingress forwards, and counts probes. */
class CountingBackend {
  isReady = true;
  readonly probedMs: number[] = [];
  readonly #server: Server = createServer(({ url }, response) => {
    if (url !== "/probe") {
      response.end("backend");
      return;
    }
    this.probedMs.push(performance.now());
    response.writeHead(this.isReady ? 200 : 503).end();
  });

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const manifests = (port: number) => `apiVersion: v1
kind: Pod
metadata: { name: probed, namespace: default, uid: u2 }
spec:
  nodeName: node
  containers:
  - name: main
    image: web
    ports: [{ name: http, containerPort: ${port} }]
    readinessProbe: { httpGet: { path: /probe, port: http }, periodSeconds: 1, failureThreshold: 1 }
status: { phase: Running, podIP: 127.0.0.1, containerStatuses: [{ name: main, image: web, imageID: "", ${AT_START_READY}, restartCount: 0, state: { running: {} } }] }
---
apiVersion: v1
kind: Service
metadata: { name: probed, namespace: default }
spec: { selector: { app: probed }, ports: [{ port: 80, targetPort: http }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: probed-1, namespace: default, labels: { kubernetes.io/service-name: probed } }
addressType: IPv4
ports: [{ port: ${port} }]
endpoints: [{ addresses: [127.0.0.1], conditions: { ready: true }, targetRef: { kind: Pod, name: probed } }]
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: { name: sluice }
spec: { controller: sluice.dev/ingress-controller }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: probed, namespace: default }
spec: { ingressClassName: sluice, defaultBackend: { service: { name: probed, port: { number: 80 } } } }
`;

async function start(): Promise<void> {
  backend = new CountingBackend();
  const port = await backend.listen();
  gateway = await WorkerGateway.start({
    workers: WORKERS,
    files: { "probed.yaml": manifests(port) },
    more: {
      listeners: {
        apiServer: { port: 0 },
        admin: { port: 0 },
        ingress: { httpPort: 0, httpsPort: 0, allowedEndpointAddresses: ["127.0.0.0/8"] },
      },
      cluster: { manifests: ["cluster.json", "probed.yaml"] },
      podProbes: { nodeNames: ["node"] },
    },
  });
}

/** Who was told to probe, in order. */
const probers = (): { pid: number; isSuccessor: boolean }[] =>
  gateway
    .log()
    .split("\n")
    .filter((line) => line.includes("this process is the prober"))
    .map((line) => JSON.parse(line) as { pid: number; isSuccessor: boolean });

/** Each stays connected, so that each is with another worker. */
function connectToAll(): (() => Promise<number | undefined>)[] {
  const { address: host, port } = gateway.listener("ingress.http");
  return Array.from({ length: WORKERS }, () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agents.push(agent);
    return () =>
      new Promise((resolve, reject) => {
        get({ host, port, agent, path: "/" }, (response) => {
          response.resume().on("end", () => resolve(response.statusCode));
        }).on("error", reject);
      });
  });
}

async function statusesOf(asks: readonly (() => Promise<number | undefined>)[]) {
  const statuses: (number | undefined)[] = [];
  for (const ask of asks) statuses.push(await ask());
  return statuses;
}

const ALL_READY = Array(WORKERS).fill(200);
const NONE_READY = Array(WORKERS).fill(503);

describe("probes of three workers", () => {
  it("are run by one of them, and counted by it alone", async () => {
    await start();
    await eventually("eight probes", () => backend.probedMs.length >= 8, { timeoutMs: 60_000 });
    const [from = 0, to = 0] = [backend.probedMs[2], backend.probedMs[7]];
    // Five periods of a second; three probers would take less than two seconds.
    expect(to - from).toBeGreaterThan(3_500);
    expect(probers().map(({ isSuccessor }) => isSuccessor)).toEqual([false]);
    const counted = (await gateway.admin("/metrics"))
      .split("\n")
      .filter((line) => line.startsWith("prober_probe_total{"));
    expect(counted).toHaveLength(1);
    for (let times = 0; times < WORKERS; times += 1) {
      expect(JSON.parse(await gateway.admin("/debug/probes"))).toMatchObject([
        { namespace: "default", pod: "probed" },
      ]);
    }
    expect(counted[0]).toMatch(/probe_type="Readiness".*result="successful"/);
  });

  it("decide in all of them, and in one that starts later, who is ready", async () => {
    await start();
    const asks = connectToAll();
    await expect.poll(() => statusesOf(asks)).toEqual(ALL_READY);
    backend.isReady = false;
    await expect.poll(() => statusesOf(asks)).toEqual(NONE_READY);
    const prober = probers()[0]?.pid;
    const index = [0, 1, 2].find((each) => gateway.pidOf(each) !== prober) as number;
    const killed = gateway.pidOf(index);
    process.kill(killed, "SIGKILL");
    await expect.poll(() => gateway.pidOf(index)).not.toBe(killed);
    // Manifests say that it is ready.
    expect(await statusesOf(connectToAll())).toEqual(NONE_READY);
    expect(probers()).toHaveLength(1);
  });

  it("go on in another one when the prober hangs: it is killed and replaced", async () => {
    await start();
    await eventually("a prober", () => probers().length === 1);
    const hung = probers()[0]?.pid as number;
    process.kill(hung, "SIGSTOP");
    await eventually("another prober", () => probers().length === 2, { timeoutMs: 70_000 });
    expect(probers()[1]).toMatchObject({ isSuccessor: true });
    expect(probers()[1]?.pid).not.toBe(hung);
    expect(gateway.log()).toContain("the worker that probes for all does not answer, and is killed");
    const before = backend.probedMs.length;
    await eventually("probes that go on", () => backend.probedMs.length > before + 1, { timeoutMs: 10_000 });
    await expect.poll(() => gateway.metric("sluice_workers_ready")).toBe(WORKERS);
  });

  it("go on in another one when the prober is killed, and nobody who was ready stops being so", async () => {
    await start();
    await expect.poll(() => statusesOf(connectToAll())).toEqual(ALL_READY);
    const killed = probers()[0]?.pid as number;
    process.kill(killed, "SIGKILL");
    await expect.poll(() => gateway.metric('sluice_workers_ended_total{cause="crash"}')).toBe(1);
    const before = backend.probedMs.length;
    while (backend.probedMs.length < before + 2) {
      expect(await statusesOf(connectToAll())).toEqual(ALL_READY);
      for (const agent of agents.splice(0)) agent.destroy();
    }
    expect(probers().map(({ isSuccessor }) => isSuccessor)).toEqual([false, true]);
    expect(probers()[1]?.pid).not.toBe(killed);
    await expect.poll(() => gateway.metric("sluice_workers_ready")).toBe(WORKERS);
    const asks = connectToAll();
    backend.isReady = false;
    await expect.poll(() => statusesOf(asks)).toEqual(NONE_READY);
    backend.isReady = true;
    await expect.poll(() => statusesOf(asks)).toEqual(ALL_READY);
  });
});
