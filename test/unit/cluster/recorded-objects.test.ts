import { describe, expect, it, onTestFinished } from "vitest";
import { StatusError } from "../../../packages/client/src/api/status.ts";
import { RbacAuthorizer } from "../../../src/access/authz/component.ts";
import { RbacSource } from "../../../src/access/authz/rbac/rbac-source.ts";
import { requestAttributes } from "../../../src/access/authz/request-attributes.ts";
import type { Ingress, Service } from "../../../src/api/networking-objects.ts";
import type { KubernetesObject, ObjectKind } from "../../../src/api/objects.ts";
import type { Cluster } from "../../../src/cluster/cluster.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { locate, nodeEndpointOf } from "../../../src/cluster/locate.ts";
import { parseManifests } from "../../../src/cluster/manifests.ts";
import { compilingCertificates } from "../../../src/ingress/certificates.ts";
import { compileRoutes, routeBackendOf } from "../../../src/ingress/compile-routes.ts";
import { IngressClasses } from "../../../src/ingress/ingress-classes.ts";
import { routeOptionsOf } from "../../../src/ingress/route-options.ts";
import { ServiceBalancer } from "../../../src/ingress/service-balancer.ts";
import { endpointsOf } from "../../../src/ingress/service-endpoints.ts";
import { ApiError } from "../../../src/kubernetes/api-client.ts";
import { BadObjectError, liveObject, objectPath } from "../../../src/kubernetes/live-object.ts";
import { atOnce } from "../../../src/lifecycle/slices.ts";
import { AddressRules } from "../../../src/net/address-rules.ts";
import { eventually } from "../../support/eventually.ts";
import { defaultLocateOptions } from "../../support/locate-options.ts";
import {
  listRecorded,
  RECORDED_KINDS,
  type RecordedObject,
  recorded,
  recordedLines,
  recordedObjects,
} from "../../support/recorded-objects.ts";
import { followScripted, ScriptedApi } from "../../support/scripted-api.ts";

function follow(kinds: readonly ObjectKind[] = RECORDED_KINDS) {
  const api = new ScriptedApi();
  listRecorded(api);
  const followed = followScripted(api, kinds);
  onTestFinished(() => followed.live.stop());
  return { api, ...followed };
}

const namesIn = (objects: readonly { readonly metadata: { readonly name: string } }[]) =>
  objects.map(({ metadata }) => metadata.name).sort();

/** Where the null members of a value are; a list of a field that is not read keeps its nulls. */
function nullsIn(value: unknown, place = ""): string[] {
  if (value === null) return [place];
  if (typeof value !== "object") return [];
  if (Array.isArray(value)) return value.flatMap((item) => (item === null ? [] : nullsIn(item, place)));
  return Object.entries(value as object).flatMap(([name, member]) => nullsIn(member, `${place}/${name}`));
}

/** Reads all that a cluster holds as the gateway does, at every call. Nothing of it may throw for an object that was taken in. */
function readerOf(cluster: Cluster): () => Promise<void> {
  const balancer = new ServiceBalancer({
    cluster,
    addressRules: new AddressRules([]),
    dialTimeoutMs: 1,
    onTlsFailure: () => {},
  });
  const source = new RbacSource(cluster);
  onTestFinished(() => {
    balancer.stop();
    source.stop();
  });
  return async () => {
    readRoutes(cluster);
    readServices(cluster, balancer);
    await readRoles(source);
    for (const node of cluster.listNodes()) refusedOnly(() => nodeEndpointOf(node, defaultLocateOptions));
    for (const { metadata } of cluster.listPods()) {
      const { namespace = "", name } = metadata;
      const location = { subresource: "exec", namespace, pod: name, container: "main" } as const;
      refusedOnly(() => locate(cluster, location, defaultLocateOptions));
    }
  };
}

function readRoutes(cluster: Cluster): void {
  const ingresses = cluster.list("Ingress");
  const classes = new IngressClasses(cluster.list("IngressClass"), {
    controllerName: "sluice.dev/ingress-controller",
    legacyClassName: undefined,
    servesWithoutClass: true,
  });
  for (const ingress of ingresses) classes.owns(ingress);
  atOnce(compileRoutes(ingresses, "first"));
  const secretOf = (namespace: string, name: string) => cluster.get("Secret", namespace, name);
  atOnce(compilingCertificates(ingresses, secretOf, "first"));
}

function readServices(cluster: Cluster, balancer: ServiceBalancer): void {
  const slices = cluster.list("EndpointSlice");
  for (const { ports = [] } of slices) {
    for (const { name = "" } of ports) {
      endpointsOf({ spec: { ports: [{ name, port: 80 }] } } as unknown as Service, slices, 80);
    }
  }
  const ingress = { metadata: { name: "i", namespace: "recorded" } } as Ingress;
  for (const { metadata, spec } of cluster.list("Service")) {
    for (const port of [80, ...(spec?.ports ?? []).map(({ port: number }) => number)]) {
      const backend = { service: { name: metadata.name, port: { number: port } } };
      const route = routeBackendOf(backend, "/", ingress, routeOptionsOf(ingress).options);
      if (route.type === "service") balancer.turnFor(route);
    }
  }
}

async function readRoles(source: RbacSource): Promise<void> {
  const authorizer = new RbacAuthorizer(() => source.current);
  const alice = { name: "alice", uid: "", groups: ["devs"], extra: {} };
  for (const path of ["/healthz", "/api/v1/namespaces/recorded/pods"]) {
    await authorizer.authorize(
      requestAttributes(alice, { method: "GET", path, query: new URLSearchParams() }),
    );
  }
}

/** Runs what may refuse by a Status, and nothing else. */
function refusedOnly(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
  }
}

describe("objects of a real API server", () => {
  it("hold the nulls that Go writes", () => {
    const found = RECORDED_KINDS.flatMap((kind) => recordedLines(kind).flatMap((line) => nullsIn(line)));
    expect(new Set(found.map((place) => place.split("/").at(-1)))).toEqual(
      new Set(["rules", "endpoints", "ports", "containers", "lastProbeTime"]),
    );
  });

  it("are listed and watched, every event, without a bad object or a broken watch", async () => {
    const { api, store, live, lines, metric } = follow();
    await eventually("the cluster is known", () => live.unsynced.length === 0);
    for (const kind of RECORDED_KINDS) {
      expect(namesIn(store.list(kind))).toEqual(namesIn(recorded(kind).list.items));
      expect(store.list(kind).flatMap((object) => nullsIn(object))).toEqual([]);
    }
    const readEverything = readerOf(store);
    await readEverything();
    await eventually("each is watched", () => RECORDED_KINDS.every((kind) => api.isWatched(kind)));
    for (const kind of RECORDED_KINDS) {
      const { events } = recorded(kind);
      api.send(kind, ...events);
      const changes = events.filter(({ type }) => type !== "BOOKMARK").length;
      await eventually(`the events of ${kind}`, async () => {
        const count = await metric(new RegExp(`sluice_cluster_events_total\\{kind="${kind}"\\} (\\d+)`));
        return Number(count ?? 0) === changes;
      });
      await readEverything();
    }
    // Beside the Secrets that Ingresses name, one by one.
    const asked = api.asked.filter((each) => !each.includes("/namespaces/"));
    expect(asked).toHaveLength(2 * RECORDED_KINDS.length);
    expect(lines.filter((line) => line.includes("cannot be read"))).toEqual([]);
  });

  it("are listed again at once when the version of a watch is forgotten", async () => {
    const { api } = follow(["Pod"]);
    await eventually("pods are watched", () => api.isWatched("Pod"));
    const startedMs = performance.now();
    api.send("Pod", ...recordedLines("watch-expired"));
    await eventually("they are listed again", () => api.asked.length === 4);
    expect(api.asked[2]).toBe("list /api/v1/pods");
    expect(performance.now() - startedMs).toBeLessThan(250);
  });

  it("are read through one by one", async () => {
    const { api, live, store } = follow([]);
    const [pod] = recordedObjects("Pod").filter(({ spec }) => (spec as { nodeName?: string }).nodeName);
    const [node] = recordedObjects("Node");
    if (pod === undefined || node === undefined) throw new Error("there is a pod on a node");
    const { namespace = "", name } = pod.metadata;
    api.answers.set(objectPath("Pod", namespace, name), pod);
    api.answers.set(objectPath("Node", "", node.metadata.name), node);
    await live.lookUp(namespace, name);
    expect(store.getPod(namespace, name)?.spec.nodeName).toBe(node.metadata.name);
    expect(nodeEndpointOf(store.listNodes()[0] as never, defaultLocateOptions).port).toBe(10_250);
  });

  it.each(RECORDED_KINDS)("are manifests, too: %s", async (kind) => {
    const items = recordedObjects(kind);
    const text = JSON.stringify({ apiVersion: "v1", kind: "List", items });
    const objects = parseManifests([{ name: "recorded.json", text }]);
    const read = objects.filter((object) => object.kind === kind).map(({ metadata }) => metadata.name);
    expect(read).toEqual(expect.arrayContaining(namesIn(items)));
    const store = new ClusterStore();
    store.replaceAll(objects, new Date());
    await readerOf(store)();
  });

  it("refuse what is not known in the API server's own Status", () => {
    const [{ object }] = recordedLines("watch-expired") as [{ object: { code: number } }];
    const error = new ApiError(object.code, JSON.stringify(object));
    expect([error.isVersionUseless, error.message]).toEqual([true, "too old resource version: 1 (593)"]);
  });
});

/** Every place of an object, as the names on the way to it. */
function* placesIn(value: unknown, place: readonly string[] = []): Generator<readonly string[]> {
  if (typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (name === "managedFields") continue;
    yield [...place, name];
    yield* placesIn(member, [...place, name]);
  }
}

function withValueAt(object: RecordedObject, place: readonly string[], value: unknown): unknown {
  const copy = structuredClone(object);
  let parent = copy as unknown as Record<string, unknown>;
  for (const name of place.slice(0, -1)) parent = parent[name] as Record<string, unknown>;
  parent[place.at(-1) as string] = value;
  return copy;
}

describe("objects of a real API server, broken in one place", () => {
  const WRONG: readonly unknown[] = [null, "", 0, true, [], {}, [null], { a: null }];

  it.each(RECORDED_KINDS)("are taken in whole or refused, and never throw in a reader: %s", async (kind) => {
    const store = new ClusterStore();
    for (const each of RECORDED_KINDS) {
      for (const item of recorded(each).list.items) store.upsert(liveObject(each, item));
    }
    const readEverything = readerOf(store);
    let taken = 0;
    let refused = 0;
    for (const item of recorded(kind).list.items) {
      for (const place of placesIn(item)) {
        for (const value of WRONG) {
          let object: KubernetesObject;
          try {
            object = liveObject(kind, withValueAt(item, place, value));
          } catch (error) {
            expect(error).toBeInstanceOf(BadObjectError);
            refused++;
            continue;
          }
          taken++;
          expect(nullsIn(object), place.join("/")).toEqual([]);
          const { namespace = "", name } = object.metadata;
          store.remove(kind, namespace, name);
          store.upsert(object);
          await readEverything();
          store.remove(kind, namespace, name);
          store.upsert(liveObject(kind, item));
        }
      }
    }
    expect([taken > 0, refused > 0]).toEqual([true, true]);
  }, 60_000);
});
