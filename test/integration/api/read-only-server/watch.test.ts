import { describe, expect, it, vi } from "vitest";
import type { Pod } from "../../../../src/api/objects.ts";
import { answerApiRequest } from "../../../../src/api/read-only-server/answer-api-request.ts";
import { ClusterStore } from "../../../../src/cluster/cluster-store.ts";
import { testApiOptions } from "./http-adapter.ts";

// The bound under test.
const BOOKMARK_PERIOD_MS = 60_000;

const pod = (name: string, app = "web"): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "default", labels: { app } },
  spec: { containers: [{ name: "main" }] },
});
const now = new Date("2026-01-01T00:00:00Z");

const watch = (store: ClusterStore, query: string, path = "/api/v1/pods", accept = "") => {
  const request = { method: "GET", path, query: new URLSearchParams(`watch=true&${query}`), accept };
  const answer = answerApiRequest(request, store, testApiOptions);
  expect(answer?.status).toBe(200);
  const events = (answer?.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await events.next();
    return done ? undefined : JSON.parse(new TextDecoder().decode(value));
  };
  const nextName = async () => {
    const event = await next();
    return event && `${event.type} ${event.object.metadata.name}`;
  };
  return { next, nextName, stop: () => events.return?.() };
};
const storeOf = (...pods: Pod[]) => {
  const store = new ClusterStore({ maxRememberedChanges: 4 });
  store.replaceAll(pods, now);
  return store;
};

describe("a watch", () => {
  it("starts with the present state, then tells changes as they come", async () => {
    const store = storeOf(pod("a"));
    const { nextName, stop } = watch(store, "");
    expect(await nextName()).toBe("ADDED a");
    const waiting = nextName();
    store.replaceAll([pod("b")], now);
    expect([await waiting, await nextName()]).toEqual(["ADDED b", "DELETED a"]);
    const unfinished = nextName();
    await stop();
    expect(await unfinished).toBeUndefined();
  });

  it("continues after a version", async () => {
    const store = storeOf(pod("a"));
    const { nextName, stop } = watch(store, `resourceVersion=${store.resourceVersion}`);
    store.replaceAll([pod("a", "other")], now);
    expect(await nextName()).toBe("MODIFIED a");
    await stop();
  });

  it("sees objects come and go through its selector and its path", async () => {
    const store = storeOf(pod("a"), pod("b"));
    const query = `labelSelector=app%3Dweb&fieldSelector=metadata.name%3Da&resourceVersion=${store.resourceVersion}`;
    const { nextName, stop } = watch(store, query, "/api/v1/namespaces/default/pods");
    store.replaceAll([pod("a", "other"), pod("b", "x")], now);
    store.replaceAll([pod("a"), pod("b", "x")], now);
    expect([await nextName(), await nextName()]).toEqual(["DELETED a", "ADDED a"]);
    await stop();
  });

  it("sends Tables to who wants them", async () => {
    const { next, stop } = watch(
      storeOf(pod("a")),
      "",
      undefined,
      "application/json;as=Table;v=v1;g=meta.k8s.io",
    );
    expect(await next()).toMatchObject({
      type: "ADDED",
      object: { kind: "Table", rows: [{ cells: expect.arrayContaining(["a"]) }] },
    });
    await stop();
  });

  it("marks the end of the initial events when asked", async () => {
    const { nextName, next, stop } = watch(
      storeOf(pod("a")),
      "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    );
    expect(await nextName()).toBe("ADDED a");
    expect(await next()).toEqual({
      type: "BOOKMARK",
      object: {
        kind: "Pod",
        apiVersion: "v1",
        metadata: { resourceVersion: "2", annotations: { "k8s.io/initial-events-end": "true" } },
      },
    });
    await stop();
  });

  it("has a bookmark each minute if the client allows them", async () => {
    vi.useFakeTimers();
    try {
      const store = storeOf(pod("a"));
      const from = `resourceVersion=${store.resourceVersion}`;
      const { next, nextName, stop } = watch(store, `${from}&allowWatchBookmarks=true`);
      const silent = watch(store, from);
      const waiting = next();
      const nothing = vi.fn();
      const end = silent.next().then(nothing);
      await vi.advanceTimersByTimeAsync(BOOKMARK_PERIOD_MS);
      const metadata = { resourceVersion: String(store.resourceVersion) };
      expect(await waiting).toEqual({
        type: "BOOKMARK",
        object: { kind: "Pod", apiVersion: "v1", metadata },
      });
      expect(nothing).not.toHaveBeenCalled();
      // A client that reads late gets what it missed, then one bookmark.
      await vi.advanceTimersByTimeAsync(3 * BOOKMARK_PERIOD_MS);
      store.replaceAll([pod("a"), pod("b")], now);
      expect(await nextName()).toBe("ADDED b");
      expect(await next()).toMatchObject({ object: { metadata: { resourceVersion: "3" } } });
      const last = next();
      await stop();
      await silent.stop();
      expect([await last, await end]).toEqual([undefined, undefined]);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("ends with 410 when a slow client misses changes that are forgotten", async () => {
    const store = storeOf();
    const { next, stop } = watch(store, "");
    for (let round = 0; round < 10; round++) store.replaceAll([pod(`p${round}`)], now);
    expect(await next()).toMatchObject({
      type: "ERROR",
      object: { kind: "Status", code: 410, reason: "Expired" },
    });
    expect(await next()).toBeUndefined();
    await stop();
  });

  it("ends in good order after its timeout", async () => {
    vi.useFakeTimers();
    try {
      const store = storeOf();
      const { next } = watch(store, "timeoutSeconds=5");
      const ended = next();
      await vi.advanceTimersByTimeAsync(5_000);
      expect(await ended).toBeUndefined();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});
