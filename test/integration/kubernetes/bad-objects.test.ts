import { describe, expect, it, onTestFinished } from "vitest";
import type { ObjectKind } from "../../../src/api/objects.ts";
import type { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { ApiError } from "../../../src/kubernetes/api-client.ts";
import { eventually } from "../../support/eventually.ts";
import { followScripted, ScriptedApi } from "../../support/scripted-api.ts";
import { named, RecordedBackoff } from "./live.ts";

type ClusterStoreOptions = NonNullable<ConstructorParameters<typeof ClusterStore>[0]>;

// The bound under test.
const MAX_LOGGED_BAD_OBJECTS = 1_000;

const bad = { name: "bad", namespace: "default" };
/** What no API server should send, in the place of a pod. */
const BAD_PODS: readonly (readonly [string, unknown])[] = [
  ["null", null],
  ["a text", "pod"],
  ["no metadata", { kind: "Pod", metadata: null }],
  ["a name that is a number", { kind: "Pod", metadata: { name: 7 } }],
  ["another kind", { kind: "Node", metadata: bad }],
  ["containers that are a text", { metadata: bad, spec: { containers: "x" } }],
  ["a container that is a number", { metadata: bad, spec: { containers: [1] } }],
];

/** Follows pods of a scripted API; every wait is recorded. */
async function following(
  items: readonly unknown[],
  kinds: readonly ObjectKind[] = ["Pod"],
  storeOptions: ClusterStoreOptions = {},
) {
  const api = new ScriptedApi();
  for (const kind of kinds) api.listsAs(kind, kind === "Pod" ? items : []);
  const waits: number[] = [];
  const backoff = () => new RecordedBackoff(waits);
  const followed = followScripted(api, kinds, { backoff, storeOptions });
  onTestFinished(() => followed.live.stop());
  await eventually("pods are watched", () => api.isWatched("Pod"));
  const names = () => followed.store.listPods().map(({ metadata }) => metadata.name);
  const badObjects = () => followed.metric(/sluice_cluster_bad_objects_total\{kind="Pod"\} (\d+)/);
  return { api, ...followed, names, waits, badObjects };
}

describe("a bad object", () => {
  it.each(BAD_PODS)("(%s) in a watch harms neither the watch nor others", async (_, object) => {
    const { api, names, badObjects } = await following([named("a", "1")]);
    api.send("Pod", { type: "MODIFIED", object }, { type: "ADDED", object: named("b", "2") });
    await eventually("the other pod", () => names().join() === "a,b");
    expect(api.asked).toEqual(["list /api/v1/pods", "watch /api/v1/pods"]);
    expect(await badObjects()).toBe("1");
  });

  it("is absent from a list, and the rest of the list is there", async () => {
    const items = [named("a", "1"), ...BAD_PODS.map(([, object]) => object), named("z", "1")];
    const { names, badObjects, lines } = await following(items);
    expect(names()).toEqual(["a", "z"]);
    expect(await badObjects()).toBe(String(BAD_PODS.length));
    expect(lines.join("\n")).toMatch(
      /"name":"bad","problem":"json: cannot unmarshal string into Go struct field PodSpec\.spec\.containers/,
    );
  });

  it("is no longer what it was", async () => {
    const { api, names } = await following([named("a", "1"), named("bad", "1")]);
    api.send("Pod", { type: "MODIFIED", object: { metadata: bad, spec: [] } });
    await eventually("it is gone", () => names().join() === "a");
    api.send("Pod", { type: "DELETED", object: { metadata: bad, spec: [] } });
    api.send("Pod", { type: "MODIFIED", object: named("bad", "3") });
    await eventually("it is back", () => names().join() === "a,bad");
  });

  it("is logged once, and a flood of them is only counted", async () => {
    const { api, lines, badObjects } = await following([]);
    const events = Array.from({ length: MAX_LOGGED_BAD_OBJECTS + 10 }, (_, index) => ({
      type: "MODIFIED",
      object: { metadata: { name: `bad-${index}` }, spec: [] },
    }));
    api.send("Pod", ...events, ...events);
    await eventually("all are counted", async () => (await badObjects()) === String(2 * events.length));
    expect(lines.filter((line) => line.startsWith("an object"))).toHaveLength(MAX_LOGGED_BAD_OBJECTS);
  });

  it("takes the place of no object of another kind", async () => {
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n", resourceVersion: "1" } };
    const { store, names } = await following([named("a", "1"), node], ["Pod", "Node"]);
    expect([names(), store.listNodes()]).toEqual([["a"], []]);
  });
});

describe("a listener of the store that throws", () => {
  it("harms neither the watch nor the other listeners", async () => {
    const errors: unknown[] = [];
    const { api, store, names } = await following([named("a", "1")], ["Pod"], {
      onListenerError: (error) => void errors.push(error),
    });
    const heard: string[] = [];
    store.subscribe(() => {
      throw new TypeError("endpoints is not iterable");
    });
    store.subscribe(({ object }) => void heard.push(object.metadata.name));
    api.send("Pod", { type: "ADDED", object: named("b", "2") }, { type: "ADDED", object: named("c", "3") });
    await eventually("both pods", () => names().join() === "a,b,c");
    expect(heard).toEqual(["b", "c"]);
    expect(api.asked).toHaveLength(2);
    expect(errors).toEqual([expect.any(TypeError), expect.any(TypeError)]);
  });
});

describe("the wait before a watch is tried again", () => {
  const breakOff = async ({ api }: Awaited<ReturnType<typeof following>>) => {
    const asked = api.asked.length;
    api.endWatch("Pod", { isBroken: true });
    await eventually("it is tried again", () => api.asked.length > asked && api.isWatched("Pod"));
  };

  it("doubles while watches bring nothing, and is the first one again after an event", async () => {
    const followed = await following([]);
    await breakOff(followed);
    await breakOff(followed);
    await breakOff(followed);
    expect(followed.waits).toEqual([8, 16, 32]);
    followed.api.send("Pod", { type: "ADDED", object: named("a", "2") });
    await eventually("the event", () => followed.names().length === 1);
    await breakOff(followed);
    expect(followed.waits).toEqual([8, 16, 32, 8]);
  });

  it("is left out once after 410, however long the outage was", async () => {
    const { api, lines, waits } = await following([]);
    const away = () => new Error("connect ECONNREFUSED");
    api.refusals.push(away(), away(), away(), new ApiError(410, ""));
    api.endWatch("Pod", { isBroken: true });
    await eventually("it was listed again", () => lines.filter((line) => /^listed/.test(line)).length === 2);
    await eventually("it is watched again", () => api.isWatched("Pod"));
    expect(api.asked.slice(-3)).toEqual(["watch /api/v1/pods", "list /api/v1/pods", "watch /api/v1/pods"]);
    expect(waits).toEqual([8, 16, 32, 64]);
  });

  it("is kept where each list is followed by 410", async () => {
    const { api, waits } = await following([]);
    api.refusals.push(...Array.from({ length: 3 }, () => new ApiError(410, "")));
    api.endWatch("Pod");
    await eventually("it is watched again", () => api.refusals.length === 0 && api.isWatched("Pod"));
    expect(api.asked.filter((asked) => asked.startsWith("list"))).toHaveLength(4);
    expect(waits).toEqual([8, 16, 32]);
  });
});
