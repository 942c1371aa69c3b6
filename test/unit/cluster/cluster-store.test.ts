import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../../src/api/objects.ts";
import type { ClusterChange } from "../../../src/cluster/cluster.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";

const pod = (name: string, more: Partial<Pod> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "default" },
  spec: { containers: [{ name: "main" }] },
  ...more,
});
const early = new Date("2026-01-01T00:00:00.500Z");
const late = new Date("2026-01-02T00:00:00Z");
const summary = ({ type, object, resourceVersion }: ClusterChange) =>
  `${type} ${object.metadata.name} ${resourceVersion}`;

describe("ClusterStore", () => {
  it("finds and lists, in the API server's order", () => {
    const store = new ClusterStore();
    const inOther: Pod = pod("a", { metadata: { name: "a", namespace: "other" } });
    store.replaceAll(
      [
        pod("b"),
        inOther,
        pod("a"),
        { apiVersion: "v1", kind: "Node", metadata: { name: "n" } },
        { apiVersion: "v1", kind: "Namespace", metadata: { name: "other" } },
      ],
      early,
    );
    expect(store.listPods().map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).toEqual([
      "default/a",
      "default/b",
      "other/a",
    ]);
    expect(store.listPods("other")).toEqual([store.getPod("other", "a")]);
    expect([store.getNode("n")?.kind, store.getNamespace("other")?.kind]).toEqual(["Node", "Namespace"]);
    expect([store.getPod("", "n"), store.getPod("other", "b"), store.getNode("a")]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("tells every change once, with versions that grow, and keeps the age of what stays", () => {
    const store = new ClusterStore({ firstResourceVersion: 100 });
    const changes: ClusterChange[] = [];
    const unsubscribe = store.subscribe((change) => {
      expect(store.resourceVersion).toBeGreaterThanOrEqual(change.resourceVersion);
      changes.push(change);
    });
    store.replaceAll([pod("a"), pod("b")], early);
    store.replaceAll([pod("a"), pod("b")], late);
    store.replaceAll([pod("a", { status: { phase: "Failed" } }), pod("c")], late);
    expect(changes.map(summary)).toEqual([
      "ADDED a 101",
      "ADDED b 102",
      "MODIFIED a 103",
      "ADDED c 104",
      "DELETED b 105",
    ]);
    expect(changes[2]?.previous?.metadata.resourceVersion).toBe("101");
    expect(store.getPod("default", "a")?.metadata.creationTimestamp).toBe("2026-01-01T00:00:00Z");
    expect(store.getPod("default", "c")?.metadata.creationTimestamp).toBe("2026-01-02T00:00:00Z");
    unsubscribe();
    store.replaceAll([], late);
    expect(changes).toHaveLength(5);
  });

  it("remembers as many changes as it is told to", () => {
    const store = new ClusterStore({ maxRememberedChanges: 2 });
    expect(store.changesAfter(1)).toEqual([]);
    expect(store.changesAfter(0)).toBeUndefined();
    store.replaceAll([pod("a")], early);
    store.replaceAll([pod("a"), pod("b"), pod("c")], early);
    expect(store.changesAfter(2)?.map(summary)).toEqual(["ADDED b 3", "ADDED c 4"]);
    expect(store.changesAfter(4)).toEqual([]);
    expect(store.changesAfter(1)).toBeUndefined();
  });

  it("changes, replayed, give the state", () => {
    const phases = fc.constantFrom("Running", "Failed");
    const states = fc.array(fc.dictionary(fc.constantFrom("a", "b", "c", "d"), phases), { maxLength: 12 });
    fc.assert(
      fc.property(states, (history) => {
        const store = new ClusterStore();
        const replayed = new Map<string, KubernetesObject>();
        for (const state of history) {
          store.replaceAll(
            Object.entries(state).map(([name, phase]) => pod(name, { status: { phase } })),
            early,
          );
        }
        for (const { type, object } of store.changesAfter(1) ?? []) {
          if (type === "DELETED") replayed.delete(object.metadata.name);
          else replayed.set(object.metadata.name, object);
        }
        const sorted = [...replayed.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
        expect(sorted).toEqual(store.listPods());
      }),
    );
  });
});

describe("single changes", () => {
  const versioned = (name: string, resourceVersion: string, more: Partial<Pod> = {}): Pod =>
    pod(name, { metadata: { name, namespace: "default", resourceVersion, uid: `uid-of-${name}` }, ...more });

  it("an object of an API server is held as it came, and a version that is held already is no change", () => {
    const store = new ClusterStore({ firstResourceVersion: 10 });
    const changes: string[] = [];
    store.subscribe((change) => changes.push(summary(change)));
    const first = versioned("a", "900");
    expect([
      store.upsert(first),
      store.upsert(versioned("a", "900")),
      store.upsert(versioned("a", "901")),
    ]).toEqual([true, false, true]);
    expect([store.remove("Pod", "default", "a"), store.remove("Pod", "default", "a")]).toEqual([true, false]);
    expect(changes).toEqual(["ADDED a 11", "MODIFIED a 12", "DELETED a 13"]);
    expect(store.changesAfter(10)?.[0]?.object).toBe(first);
    expect(store.changesAfter(12)?.map(summary)).toEqual(["DELETED a 13"]);
  });

  it("a kind is replaced without touching another", () => {
    const store = new ClusterStore();
    store.upsert({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } });
    store.replaceKind("Pod", [versioned("a", "1"), versioned("b", "2")]);
    const changes: string[] = [];
    store.subscribe((change) => changes.push(summary(change)));
    store.replaceKind("Pod", [versioned("b", "2"), versioned("c", "3")]);
    expect(changes).toEqual(["ADDED c 5", "DELETED a 6"]);
    expect([
      store.listNodes().length,
      store.list("Pod", "default").map(({ metadata }) => metadata.name),
    ]).toEqual([1, ["b", "c"]]);
  });

  it("lists are made once, and after a change again", () => {
    const store = new ClusterStore();
    store.replaceKind("Pod", [versioned("b", "1"), versioned("a", "2")]);
    store.upsert({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } });
    const [pods, nodes] = [store.list("Pod"), store.list("Node")];
    expect(store.list("Pod")).toBe(pods);
    store.upsert(versioned("b", "3"));
    expect(store.list("Pod")).not.toBe(pods);
    expect(store.list("Pod").map(({ metadata }) => metadata.resourceVersion)).toEqual(["2", "3"]);
    expect(store.list("Node")).toBe(nodes);
  });

  it("namespaces are ordered as their keys are", () => {
    const store = new ClusterStore();
    for (const namespace of ["a-b", "a", "b"]) store.upsert(pod("x", { metadata: { name: "x", namespace } }));
    expect(store.list("Pod").map(({ metadata }) => metadata.namespace)).toEqual(["a-b", "a", "b"]);
  });
});

describe("a whole state, taken in slices", () => {
  const annotated = (name: string, value: string) =>
    pod(name, { metadata: { name, namespace: "default", annotations: { value } } });

  it("shows nothing of itself before it is complete, and then all of it, as at once", () => {
    const store = new ClusterStore();
    store.replaceAll([pod("kept"), annotated("changed", "1"), pod("gone")], early);
    const before = store.listPods();
    const changes: string[] = [];
    let seenAtFirst: readonly Pod[] | undefined;
    store.subscribe((change) => {
      seenAtFirst ??= store.listPods();
      changes.push(summary(change));
    });
    const wanted = [pod("kept"), annotated("changed", "2"), pod("new")];
    const work = store.replacingAll(wanted, late);
    let step = work.next();
    for (; step.done !== true; step = work.next()) {
      expect(store.listPods()).toBe(before);
      expect(changes).toEqual([]);
    }
    expect(step.value).toBe(3);
    expect(seenAtFirst?.map(({ metadata }) => metadata.name)).toEqual(["changed", "kept", "new"]);
    const at = store.resourceVersion;
    expect(changes).toEqual([`MODIFIED changed ${at - 2}`, `ADDED new ${at - 1}`, `DELETED gone ${at}`]);
    const ofNew = store.getPod("default", "new")?.metadata;
    expect(ofNew).toMatchObject({
      resourceVersion: String(at - 1),
      creationTimestamp: "2026-01-02T00:00:00Z",
    });
  });

  it("has the last word about what others change meanwhile", () => {
    const store = new ClusterStore();
    store.replaceAll([annotated("a", "1"), annotated("b", "1")], early);
    const work = store.replacingAll([annotated("a", "1"), annotated("b", "2")], late);
    work.next();
    work.next();
    store.upsert(annotated("a", "theirs"), late);
    store.upsert(annotated("new", "theirs"), late);
    store.remove("Pod", "default", "b");
    const versions: number[] = [];
    store.subscribe(({ resourceVersion }) => versions.push(resourceVersion));
    const from = store.resourceVersion;
    for (let step = work.next(); step.done !== true; step = work.next());
    expect(store.listPods().map(({ metadata }) => [metadata.name, metadata.annotations])).toEqual([
      ["a", { value: "1" }],
      ["b", { value: "2" }],
    ]);
    expect(versions).toEqual([from + 1, from + 2, from + 3]);
    expect(store.getPod("default", "b")?.metadata.creationTimestamp).toBe("2026-01-02T00:00:00Z");
  });
});
