import { describe, expect, it, onTestFinished } from "vitest";
import type { Ingress, Lease } from "../../../src/api/networking-objects.ts";
import { resourceOfKind } from "../../support/api-server/resources.ts";
import { TestApiServer } from "../../support/api-server/test-api-server.ts";
import { eventually } from "../../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { statusOf } from "./ask.ts";

const FAST = { leaseDuration: "1s", renewDeadline: "700ms", retryPeriod: "100ms" };
/** The leader keeps its Lease on a busy machine, too; the followers look as often. */
const STEADY = { leaseDuration: "120s", renewDeadline: "100s", retryPeriod: "100ms" };

async function liveServer(): Promise<TestApiServer> {
  const server = await TestApiServer.start();
  onTestFinished(() => server.stop());
  return server;
}

async function doorAt(server: TestApiServer, address: string, leaderElection: object = STEADY) {
  const ingress = { publishedAddresses: [address], leaderElection };
  const door = await FrontDoor.start([], ingress, {}, server);
  let isStopped = false;
  const stop = async (): Promise<void> => {
    if (isStopped) return;
    isStopped = true;
    await door.stop();
  };
  onTestFinished(stop);
  return { door, stop };
}

function leaseOf(server: TestApiServer): Lease | undefined {
  const found = server.store.get(resourceOfKind("Lease"), "default", "sluice-ingress");
  return found as unknown as Lease | undefined;
}

const holderOf = (server: TestApiServer) => leaseOf(server)?.spec?.holderIdentity;

function addressesOf(server: TestApiServer, name: string) {
  const found = server.store.get(resourceOfKind("Ingress"), "default", name) as unknown as Ingress;
  return found.status?.loadBalancer?.ingress ?? [];
}

interface StoredEvent {
  readonly involvedObject: { readonly name: string; readonly uid?: string; readonly kind: string };
  readonly reason: string;
  readonly message: string;
  readonly type: string;
  readonly count: number;
  readonly source: { readonly component: string };
}

function eventsOf(server: TestApiServer): StoredEvent[] {
  return server.store.list(resourceOfKind("Event")) as unknown as StoredEvent[];
}

const statusWrites = (server: TestApiServer) =>
  server.requests.filter(({ method, path }) => method === "PATCH" && path.endsWith("/status")).length;

const rule = (host: string, path = "/") => ({
  host,
  http: { paths: [{ path, pathType: "Prefix", backend: backend("echo-service") }] },
});

describe("several front doors on one live API", () => {
  it("one writes; when it stops, another takes over at once, for the Lease is given up", async () => {
    const server = await liveServer();
    const first = await doorAt(server, "192.0.2.1");
    await eventually("a leader", () => holderOf(server));
    const second = await doorAt(server, "192.0.2.2");
    const pod = await second.door.addPod("echo-service");
    second.door.write([
      ...serviceObjects("echo-service", [pod]),
      ingressObject("web", { rules: [rule("web")] }),
    ]);
    await eventually("an address", () => addressesOf(server, "web").length > 0);
    expect(addressesOf(server, "web")).toEqual([{ ip: "192.0.2.1" }]);
    // The other one routes all the same.
    await expect.poll(() => statusOf(second.door.httpPort, "web")).toBe(200);
    expect(statusWrites(server)).toBe(1);

    const before = holderOf(server);
    await first.stop();
    await eventually("the other's address", () => addressesOf(server, "web")[0]?.ip === "192.0.2.2");
    expect(holderOf(server)).not.toBe(before);
    expect(leaseOf(server)?.spec).toMatchObject({ leaseDurationSeconds: 120 });
  });

  it("one that dies is followed when its Lease has been seen unchanged for its time", async () => {
    const server = await liveServer();
    // As a replica that was killed has left it: its clock was a year ahead.
    server.apply({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "sluice-ingress", namespace: "default" },
      spec: {
        holderIdentity: "killed",
        leaseDurationSeconds: 1,
        acquireTime: "2099-01-01T00:00:00.000000Z",
        renewTime: "2099-01-01T00:00:00.000000Z",
        leaseTransitions: 4,
      },
    });
    const startedMs = performance.now();
    const { door } = await doorAt(server, "192.0.2.2", FAST);
    door.write([ingressObject("web", { rules: [rule("web")] })]);
    await eventually("the follower's address", () => addressesOf(server, "web").length > 0);
    expect(performance.now() - startedMs).toBeGreaterThan(1_000);
    expect(leaseOf(server)?.spec?.leaseTransitions).toBe(5);
  });

  it("without election each writes, and no Lease is made", async () => {
    const server = await liveServer();
    const { door } = await doorAt(server, "192.0.2.1", { leaderElect: false });
    door.write([ingressObject("web", { rules: [rule("web")] })]);
    await eventually("an address", () => addressesOf(server, "web").length > 0);
    expect(leaseOf(server)).toBeUndefined();
  });

  it("a status that could not be written is tried again", async () => {
    const server = await liveServer();
    const { door } = await doorAt(server, "192.0.2.1");
    await eventually("a leader", () => holderOf(server));
    server.faults.add("503", { on: ({ method, path }) => method === "PATCH" && path.endsWith("/status") });
    door.write([ingressObject("web", { rules: [rule("web")] })]);
    await eventually("an address", () => addressesOf(server, "web").length > 0);
    expect(server.faults.inflicted).toBe(1);
  });
});

describe("a live API that says nothing", () => {
  it("does not hold up the shutdown with all that was to be written", async () => {
    const server = await liveServer();
    const { door, stop } = await doorAt(server, "192.0.2.1");
    await eventually("a leader", () => holderOf(server));
    server.faults.add({ delayMs: 200 }, { times: 1_000, on: ({ method }) => method === "PATCH" });
    door.write(
      Array.from({ length: 300 }, (_, index) =>
        ingressObject(`web-${index}`, { rules: [rule(`web-${index}`)] }),
      ),
    );
    await eventually("a first write", () => server.faults.inflicted > 0);
    const begun = server.faults.inflicted;
    await stop();
    expect(server.faults.inflicted - begun).toBeLessThan(100);
    expect(holderOf(server)).toBe("");
  });
});

describe("Events of rules that are not served as written", () => {
  it("are told once each, by one replica, of the Ingress that has the rule", async () => {
    const server = await liveServer();
    const first = await doorAt(server, "192.0.2.1");
    await doorAt(server, "192.0.2.1");
    const resource = { apiGroup: "example.com", kind: "Bucket", name: "files" };
    const http = { paths: [{ path: "/files", pathType: "Prefix", backend: { resource } }] };
    const objects = [
      ingressObject("a-first", { rules: [rule("web")] }, { creationTimestamp: "2026-01-01T00:00:00Z" }),
      ingressObject("b-second", { rules: [rule("web"), { host: "files", http }] }),
      ingressObject(
        "c-annotated",
        { rules: [rule("third")] },
        {
          annotations: {
            "kubernetes.io/ingress.class": "foreign",
          },
        },
      ),
      ingressObject(
        "d-tls",
        { tls: [{ hosts: ["web"], secretName: "missing" }], rules: [rule("fourth")] },
        { annotations: { "sluice.dev/tls-redirect": "perhaps" } },
      ),
    ];
    first.door.write(objects);
    const told = () => eventsOf(server).map(({ reason, involvedObject: { name } }) => `${reason} ${name}`);
    await expect
      .poll(() => told().sort())
      .toEqual([
        "AmbiguousClass c-annotated",
        "DuplicateRoute b-second",
        "InvalidAnnotation d-tls",
        "InvalidCertificate d-tls",
        "SkippedBackend b-second",
      ]);
    for (const event of eventsOf(server)) {
      expect(event).toMatchObject({ type: "Warning", count: 1, source: { component: "sluice" } });
      expect(event.involvedObject).toMatchObject({ kind: "Ingress", uid: expect.any(String) });
    }
    // Compiled again, with the problems that were there.
    first.door.write([...objects, ingressObject("e-new", { rules: [rule("fifth")] })]);
    await eventually("an address", () => addressesOf(server, "e-new").length > 0);
    expect(told()).toHaveLength(5);
    expect(eventsOf(server).every(({ count }) => count === 1)).toBe(true);
  });
});
