import { describe, expect, it, vi } from "vitest";
import type { KubernetesObject } from "../../../src/api/objects.ts";
import { ApiError } from "../../../src/kubernetes/api-client.ts";
import { ReadThrough } from "../../../src/kubernetes/read-through.ts";
import { eventually } from "../../support/eventually.ts";
import { pod, startLive } from "./live.ts";

// The bounds under test.
const MISSING_FOR_MS = 1_000;
const MAX_REMEMBERED_MISSING = 10_000;

const notFound = () => new ApiError(404, '{"kind":"Status","apiVersion":"v1","status":"Failure","code":404}');

/** A client whose answers the test gives. */
function scripted(maxReadsAtOnce = 64) {
  const asked: { path: string; answer: (value: unknown) => void; fail: (error: Error) => void }[] = [];
  const found: string[] = [];
  const outcomes: string[] = [];
  let nowMs = 0;
  const reads = new ReadThrough({
    client: { json: ({ path }) => new Promise((answer, fail) => asked.push({ path, answer, fail })) },
    found: (_, object) => found.push((object as KubernetesObject).metadata.name),
    onOutcome: (_, outcome) => outcomes.push(outcome),
    nowMs: () => nowMs,
    maxReadsAtOnce,
  });
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { reads, asked, found, outcomes, pass };
}

describe("reading through", () => {
  it("asks once for all who miss the same object", async () => {
    const { reads, asked, found } = scripted();
    const both = Promise.all([
      reads.read("Pod", "a", "p"),
      reads.read("Pod", "a", "p"),
      reads.read("Pod", "b", "p"),
    ]);
    expect(asked.map(({ path }) => path)).toEqual([
      "/api/v1/namespaces/a/pods/p",
      "/api/v1/namespaces/b/pods/p",
    ]);
    for (const { answer } of asked) answer(pod("p"));
    expect(await both).toEqual([true, true, true]);
    expect(found).toEqual(["p", "p"]);
  });

  it("remembers for a moment what the API does not know", async () => {
    const { reads, asked, outcomes, pass } = scripted();
    const first = reads.read("Node", "", "n");
    asked[0]?.fail(notFound());
    expect([await first, await reads.read("Node", "", "n")]).toEqual([false, false]);
    pass(MISSING_FOR_MS);
    void reads.read("Node", "", "n");
    expect([asked.length, outcomes]).toEqual([2, ["missing", "remembered"]]);
  });

  it("remembers only so many", async () => {
    const { reads, asked } = scripted();
    for (let index = 0; index <= MAX_REMEMBERED_MISSING; index++) {
      const read = reads.read("Node", "", `n${index}`);
      asked.at(-1)?.fail(notFound());
      await read;
    }
    void reads.read("Node", "", "n0");
    expect(asked).toHaveLength(MAX_REMEMBERED_MISSING + 2);
    expect(await reads.read("Node", "", "n1")).toBe(false);
  });

  it("asks for so many at once and no more", async () => {
    const { reads } = scripted(1);
    void reads.read("Pod", "a", "p");
    await expect(reads.read("Pod", "a", "q")).rejects.toMatchObject({ code: 429 });
  });

  it("lets a namespace that asks for nothing else wait for its turn", async () => {
    const { reads, asked } = scripted(1);
    const first = reads.read("Pod", "a", "p");
    await expect(reads.read("Pod", "a", "q")).rejects.toMatchObject({ code: 429 });
    const other = reads.read("Pod", "b", "p");
    expect(asked).toHaveLength(1);
    asked[0]?.answer(pod("p"));
    await first;
    await expect.poll(() => asked.length, { interval: 1 }).toBe(2);
    asked[1]?.answer(pod("p"));
    expect(await other).toBe(true);
  });

  it("does not say that something is missing when nobody can tell", async () => {
    const { reads, asked } = scripted();
    const read = reads.read("Pod", "a", "p");
    asked[0]?.fail(new Error("connection refused"));
    await expect(read).rejects.toMatchObject({ code: 503 });
  });

  it("takes no answer that a watch has overtaken", async () => {
    const { reads, asked, found } = scripted();
    const read = reads.read("Pod", "a", "p");
    reads.overtaken("deletion", "Pod", "a", "p");
    asked[0]?.answer(pod("p"));
    expect([await read, found]).toEqual([false, []]);
  });

  it.each(["answer", "404"])("knows an object by the watch that overtook the %s", async (kind) => {
    const { reads, asked, found, outcomes } = scripted();
    const read = reads.read("Node", "", "n");
    reads.overtaken("change", "Node", "", "n");
    if (kind === "404") asked[0]?.fail(notFound());
    else asked[0]?.answer({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } });
    expect([await read, found, outcomes]).toEqual([true, [], ["found"]]);
  });

  it("asks again where a list came between that has no such object", async () => {
    const { reads, asked, found } = scripted();
    const read = reads.read("Pod", "a", "p");
    reads.relisted("Pod", () => false);
    asked[0]?.answer(pod("p"));
    await eventually("it is asked again", () => asked.length === 2);
    asked[1]?.fail(notFound());
    expect([await read, found]).toEqual([false, []]);
  });

  it("never puts an older object over the watch's", async () => {
    const { server, client, live, store, synced } = await startLive();
    await synced();
    await eventually("both are watched", () => server.watches.size === 2);
    const older = { apiVersion: "v1", kind: "Node", metadata: { name: "n", resourceVersion: "1", uid: "u" } };
    let answer = (_object: object): void => {};
    const read = new Promise<object>((resolve) => (answer = resolve));
    const asked = vi.spyOn(client, "json").mockReturnValueOnce(read);
    const looked = live.lookUpNode("n");
    expect(asked).toHaveBeenCalledOnce();
    server.apply({ apiVersion: "v1", kind: "Node", metadata: { name: "n", labels: { age: "new" } } });
    await eventually("the watch told", () => store.getNode("n")?.metadata.labels?.age === "new");
    answer(older);
    await looked;
    expect(store.getNode("n")?.metadata.labels).toEqual({ age: "new" });
  });

  it("finds a pod and its node that no watch has told of", async () => {
    const { server, live, store, synced } = await startLive();
    await synced();
    await eventually("both are watched", () => server.watches.size === 2);
    server.watches.isSilent = true;
    server.apply(pod("late"));
    server.apply({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } });
    await Promise.all([live.lookUp("default", "late"), live.lookUp("default", "late")]);
    expect([store.getPod("default", "late")?.kind, store.getNode("n")?.kind]).toEqual(["Pod", "Node"]);
    expect(live.lookUp("default", "late")).toBeUndefined();
    await live.lookUp("default", "none");
    expect(store.getPod("default", "none")).toBeUndefined();
    expect(server.requests.filter(({ path }) => path.endsWith("/late"))).toHaveLength(1);
  });
});
