import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it, vi } from "vitest";
import { TESTER_TOKEN } from "../../support/gateway-files.ts";
import { CAT, type KubeletScript, SUCCESS } from "../../support/scripted-kubelet.ts";
import { startSpdyExec } from "../../support/spdy-exec-client.ts";
import type { V5Client } from "../../support/v5-client.ts";
import { WorkerGateway } from "../../support/worker-gateway.ts";

let gateway: WorkerGateway;
/** Three processes start for each test, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 90_000, expect: { poll: { timeout: 30_000 } } });
afterEach(() => gateway.stop());

const open = async (count: number): Promise<V5Client[]> => {
  const clients = Array.from({ length: count }, () => gateway.exec());
  await Promise.all(clients.map(({ opened }) => opened));
  return clients;
};

/** Which client is carried by which worker, seen by what is listed after each one is opened. */
const openOneByOne = async (count: number): Promise<{ client: V5Client; worker: number }[]> => {
  const known = new Set<string>();
  const opened: { client: V5Client; worker: number }[] = [];
  for (let index = 0; index < count; index += 1) {
    const [client] = await open(1);
    const added = (await gateway.listed(index + 1)).find(({ id }) => !known.has(id));
    if (client === undefined || added === undefined) throw new Error("no session was added");
    known.add(added.id);
    opened.push({ client, worker: added.worker });
  }
  return opened;
};

const logged = (message: string): number => gateway.log().split(`"${message}"`).length - 1;

const finish = async (client: V5Client, input: Buffer): Promise<void> => {
  client.send(0, input);
  client.closeStdin();
  const { stdout, status, closeCode } = await client.done;
  expect([stdout.equals(input), status, closeCode]).toEqual([true, SUCCESS, 1000]);
};

describe("two workers", () => {
  it("share sessions evenly, and operators see all of them as one gateway", async () => {
    gateway = await WorkerGateway.start({ script: CAT });
    const clients = await open(8);
    const workers = (await gateway.listed(8)).map(({ worker }) => worker);
    expect([workers.filter((index) => index === 0), workers.filter((index) => index === 1)]).toEqual([
      [0, 0, 0, 0],
      [1, 1, 1, 1],
    ]);
    expect(await gateway.metric('sluice_streaming_active_sessions{subresource="exec"}')).toBe(8);
    expect(await gateway.admin("/metrics")).toMatch(/^sluice_build_info\{version="\S+"\} 1$/m);
    const input = randomBytes(200_000);
    await Promise.all(clients.map((client) => finish(client, input)));
    await expect.poll(() => gateway.sessions()).toEqual([]);
    expect(
      await gateway.metric('sluice_streaming_bytes_total{subresource="exec",direction="upstream"}'),
    ).toBe(8 * input.length);
    expect(await gateway.metric("sluice_workers_ready")).toBe(2);
    expect(await gateway.admin("/readyz?verbose")).toContain("[+]workers ok");
    expect(JSON.parse(await gateway.admin("/debug/nodes"))).toMatchObject([{ name: "node" }]);
  });

  it("learn of nodes each for itself, and operators see the sum", async () => {
    const refuse: KubeletScript["refuse"] = ({ method }) =>
      method === "GET" ? "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n" : undefined;
    const streaming = { mode: "websocket" };
    const kubelet = { scheme: "http", allowedAddresses: ["127.0.0.0/8"], streaming };
    gateway = await WorkerGateway.start({ script: { ...CAT, refuse }, more: { kubelet } });
    const opened = await openOneByOne(4);
    expect(new Set(opened.map(({ worker }) => worker)).size).toBe(2);
    expect(JSON.parse(await gateway.admin("/debug/nodes?name=node"))).toMatchObject([
      {
        name: "node",
        capability: { avoidedPaths: ["command"] },
        learned: {
          circuit: { state: "closed" },
          paths: { command: { failures: 2, lastFailure: "forbidden" } },
        },
      },
    ]);
    expect(await gateway.metric("sluice_nodes_dead")).toBe(0);
    await Promise.all(opened.map(({ client }) => finish(client, Buffer.from("x"))));
  });

  it("one that is killed takes its own sessions along and no others, and is replaced", async () => {
    gateway = await WorkerGateway.start({ script: CAT });
    const opened = await openOneByOne(6);
    const carriedBy = (index: number) =>
      opened.filter(({ worker }) => worker === index).map(({ client }) => client);
    const [lost, kept] = [carriedBy(0), carriedBy(1)];
    expect([lost.length, kept.length]).toEqual([3, 3]);
    const input = randomBytes(3_000_000);
    for (const client of kept) client.send(0, input.subarray(0, 1_000_000));
    const killed = gateway.pidOf(0);
    process.kill(killed, "SIGKILL");
    for (const { done } of lost) expect((await done).status).toBe("");
    await expect.poll(() => logged("session ended")).toBe(lost.length);
    expect(gateway.log()).toContain('"reason":"the worker that carried the session died"');

    await Promise.all(
      kept.map(async (client) => {
        for (const from of [1_000_000, 2_000_000]) client.send(0, input.subarray(from, from + 1_000_000));
        client.closeStdin();
        const { stdout, status } = await client.done;
        expect([stdout.equals(input), status]).toEqual([true, SUCCESS]);
      }),
    );
    await expect.poll(() => gateway.metric("sluice_workers_ready")).toBe(2);
    expect(gateway.pidOf(0)).not.toBe(killed);
    expect(await gateway.metric('sluice_workers_ended_total{cause="crash"}')).toBe(1);
    const workers = (await openOneByOne(2)).map(({ worker }) => worker);
    expect(workers.toSorted()).toEqual([0, 1]);
  });

  it("one that is killed leaves no SPDY client with an end that looks proper", async () => {
    gateway = await WorkerGateway.start({ script: CAT });
    const headers = { Authorization: `Bearer ${TESTER_TOKEN}` };
    const sessions = await Promise.all(
      Array.from({ length: 4 }, () => startSpdyExec(gateway.authority, headers)),
    );
    for (const session of sessions) await expect.poll(() => session.isReplied()).toBe(true);
    await gateway.listed(4);
    for (const worker of [0, 1]) process.kill(gateway.pidOf(worker), "SIGKILL");
    expect(await Promise.all(sessions.map(({ ended }) => ended))).toEqual(Array(4).fill("broken"));
  });

  it("what a killed one had counted stays counted", async () => {
    gateway = await WorkerGateway.start({ script: CAT });
    const counter = 'sluice_streaming_bytes_total{subresource="exec",direction="upstream"}';
    for (let times = 0; times < 4; times += 1) {
      const [client] = await open(1);
      await finish(client as V5Client, Buffer.alloc(1_000));
    }
    await expect.poll(() => gateway.metric(counter)).toBe(4_000);
    process.kill(gateway.pidOf(0), "SIGKILL");
    await expect.poll(() => gateway.metric('sluice_workers_ended_total{cause="crash"}')).toBe(1);
    expect(await gateway.metric(counter)).toBe(4_000);
  });

  it("serve on while one is stopped: new sessions wait for it or go elsewhere, those of the other move", async () => {
    gateway = await WorkerGateway.start({ script: CAT });
    const opened = await openOneByOne(2);
    const moving = opened.find(({ worker }) => worker === 1)?.client as V5Client;
    process.kill(gateway.pidOf(0), "SIGSTOP");
    try {
      await finish(moving, randomBytes(500_000));
      // Operators see the other one, and what this one said last.
      expect(await gateway.metric("sluice_workers_ready")).toBe(2);
    } finally {
      process.kill(gateway.pidOf(0), "SIGCONT");
    }
  });

  it("serve the connections that were on their way to one that was killed", async () => {
    gateway = await WorkerGateway.start({ script: CAT });
    const killed = gateway.pidOf(0);
    process.kill(killed, "SIGSTOP");
    let answered = 0;
    const answers = Array.from({ length: 8 }, async () => {
      const { status } = await fetch(`http://${gateway.authority}/healthz`, {
        headers: { Connection: "close" },
        signal: AbortSignal.timeout(60_000),
      });
      answered += 1;
      return status;
    });
    // Those of the other worker; it then has no connection, and the stopped one has four.
    await expect.poll(() => answered).toBeGreaterThanOrEqual(4);
    process.kill(killed, "SIGKILL");
    expect(await Promise.all(answers)).toEqual(Array(8).fill(200));
    await expect.poll(() => gateway.metric("sluice_workers_ready")).toBe(2);
  });

  it("one that dies while manifests are wrong is replaced, with the last good ones", async () => {
    gateway = await WorkerGateway.start({ script: CAT });
    const right = gateway.read("cluster.json");
    const later = JSON.parse(right);
    later.items.push({ apiVersion: "v1", kind: "Namespace", metadata: { name: "later" } });
    gateway.write("cluster.json", JSON.stringify(later));
    await expect.poll(() => logged("manifests reloaded")).toBe(2);
    gateway.write("cluster.json", "kind: [");
    await expect.poll(() => logged("manifests are invalid, the last good ones stay in use")).toBe(2);
    // With the last worker that knew them, too.
    for (const index of [0, 1]) process.kill(gateway.pidOf(index), "SIGKILL");
    await expect.poll(() => gateway.metric('sluice_workers_ended_total{cause="crash"}')).toBe(2);
    await expect.poll(() => gateway.metric("sluice_workers_ready")).toBe(2);
    const namespaces = await fetch(`http://${gateway.authority}/api/v1/namespaces/later`, {
      headers: { Authorization: `Bearer ${TESTER_TOKEN}` },
    });
    expect(namespaces.status).toBe(200);
    gateway.write("cluster.json", right);
    await expect.poll(() => logged("manifests reloaded")).toBe(4);
  });

  it("hold limits together", async () => {
    gateway = await WorkerGateway.start({
      script: CAT,
      more: { policy: { limits: { maxSessionsPerUser: 3 } }, limits: { maxConcurrentSessions: 100 } },
    });
    const clients = await open(3);
    await expect(gateway.exec().opened).rejects.toThrow("429");
    await finish(clients[0] as V5Client, Buffer.from("over"));
    await expect.poll(() => gateway.exec().opened.then(() => "opened", String)).toBe("opened");
    process.kill(gateway.pidOf(0), "SIGKILL");
    await expect.poll(() => gateway.metric('sluice_workers_ended_total{cause="crash"}')).toBe(1);
    // Its places are free again.
    await expect.poll(() => gateway.exec().opened.then(() => "opened", String)).toBe("opened");
  });

  it("drain together: sessions finish, new ones get 503, and all processes are gone", async () => {
    gateway = await WorkerGateway.start({ script: CAT, gracePeriod: "20s" });
    const clients = await open(4);
    await gateway.listed(4);
    const pids = [gateway.pidOf(0), gateway.pidOf(1)];
    gateway.signal("SIGTERM");
    await expect.poll(() => gateway.admin("/readyz")).toContain("readyz check failed");
    await expect.poll(() => gateway.exec().opened.then(() => "opened", String)).toContain("503");
    const input = randomBytes(100_000);
    await Promise.all(clients.map((client) => finish(client, input)));
    expect(await gateway.exited).toEqual([0, null]);
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });

  it("count a session that has just begun when they drain", async () => {
    gateway = await WorkerGateway.start({ script: CAT, gracePeriod: "20s" });
    const [client] = await open(1);
    gateway.signal("SIGTERM");
    await expect.poll(() => gateway.admin("/readyz")).toContain("readyz check failed");
    await expect(gateway.exec().opened).rejects.toThrow("503");
    await finish(client as V5Client, randomBytes(1_000));
    expect(await gateway.exited).toEqual([0, null]);
  });

  it("whose primary is killed end by themselves", async () => {
    gateway = await WorkerGateway.start({ script: CAT });
    const [client] = await open(1);
    await gateway.listed(1);
    const pids = [gateway.pidOf(0), gateway.pidOf(1)];
    gateway.signal("SIGKILL");
    expect(JSON.parse((await client?.done)?.status ?? "{}")).toMatchObject({ status: "Failure" });
    for (const pid of pids) {
      await expect
        .poll(() => {
          try {
            return process.kill(pid, 0);
          } catch {
            return "gone";
          }
        })
        .toBe("gone");
    }
  });
});
