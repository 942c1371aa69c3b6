import { afterEach, expect, it, vi } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { WorkerGateway } from "../../../support/worker-gateway.ts";

/** Processes start for each test, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 120_000 });

const SESSIONS = 40;

let gateway: WorkerGateway;
afterEach(() => gateway.stop());

/** As many pods as a thread reads for a while. */
function manyPods(text: string): string {
  const cluster = JSON.parse(text) as { items: { kind: string; metadata: { name: string } }[] };
  const pod = cluster.items.find(({ kind }) => kind === "Pod");
  if (pod === undefined) throw new Error("there is a pod");
  const pods = Array.from({ length: 3_000 }, (_, index) => ({
    ...pod,
    metadata: { ...pod.metadata, name: `another-${index}` },
  }));
  return JSON.stringify({ ...cluster, items: [...cluster.items, ...pods] });
}

it.each([
  ["while it rereads manifests", ["SIGHUP", "SIGTERM"]],
  ["and is told to reread manifests while sessions end", ["SIGTERM", "SIGHUP"]],
] as const)("a gateway that is told to end %s tells every session, and ends", async (_when, signals) => {
  gateway = await WorkerGateway.start({ workers: 1 });
  const clients = Array.from({ length: SESSIONS }, () => gateway.exec("stdout=true"));
  await Promise.all(clients.map(({ opened }) => opened));
  gateway.write("cluster.json", manyPods(gateway.read("cluster.json")));
  for (const signal of signals) gateway.signal(signal);
  expect(await gateway.exited).toEqual([0, null]);
  for (const { status, closeCode } of await Promise.all(clients.map(({ done }) => done))) {
    expect(status).toContain("the gateway is shutting down");
    expect(closeCode).toBe(1000);
  }
});

it("a second SIGTERM ends a gateway at once that waits for its sessions", async () => {
  gateway = await WorkerGateway.start({ workers: 1, gracePeriod: "5m" });
  const client = gateway.exec("stdout=true");
  await client.opened;
  gateway.signal("SIGTERM");
  await eventually("it waits", () => gateway.log().includes("draining sessions"));
  gateway.signal("SIGTERM");
  expect(await gateway.exited).toEqual([null, "SIGTERM"]);
});
