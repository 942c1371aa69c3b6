import {
  type ApiException,
  CoreV1Api,
  KubeConfig,
  type KubernetesObject,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1Pod,
  Watch,
} from "@kubernetes/client-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TestApiServer } from "../../../support/api-server/test-api-server.ts";
import { eventually } from "../../../support/eventually.ts";

let server: TestApiServer;
let config: KubeConfig;
let api: CoreV1Api;

beforeEach(async () => {
  server = await TestApiServer.start();
  config = new KubeConfig();
  config.loadFromClusterAndUser({ name: "c", server: server.url, skipTLSVerify: true }, { name: "u" });
  api = config.makeApiClient(CoreV1Api);
});
afterEach(() => server.stop());

const pod = (name: string, more: Partial<V1Pod> = {}): V1Pod => ({
  metadata: { name },
  spec: { containers: [{ name: "main", image: "i" }] },
  ...more,
});
const create = (name: string) => api.createNamespacedPod({ namespace: "default", body: pod(name) });
const codeOf = async (promise: Promise<unknown>): Promise<number> =>
  promise.then(
    () => 200,
    (error: ApiException<unknown>) => error.code,
  );
const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
/** Events until `count` of them came or the watch ended. */
const watch = (path: string, query: Record<string, string>, count: number) =>
  new Promise<string[]>((resolve, reject) => {
    const seen: string[] = [];
    const done = (error: unknown) => (error ? reject(error) : resolve(seen));
    new Watch(config)
      .watch(
        path,
        query,
        (type, object: KubernetesObject) => {
          seen.push(`${type} ${object.metadata?.name ?? object.kind}`);
          if (seen.length === count) resolve(seen);
        },
        done,
      )
      .catch(reject);
  });

describe("the test API server, used by the official client", () => {
  it("creates, reads, lists by pages and selectors, deletes", async () => {
    for (const name of ["c", "a", "b"]) await create(name);
    expect(await codeOf(create("a"))).toBe(409);
    const first = await api.listNamespacedPod({ namespace: "default", limit: 2 });
    const second = await api.listNamespacedPod({
      namespace: "default",
      limit: 2,
      _continue: first.metadata?._continue ?? "",
    });
    expect([...first.items, ...second.items].map(({ metadata }) => metadata?.name)).toEqual(["a", "b", "c"]);
    expect(second.metadata?.resourceVersion).toBe(first.metadata?.resourceVersion);
    const selected = await api.listPodForAllNamespaces({ fieldSelector: "metadata.name=b" });
    expect(selected.items.map(({ status }) => status?.phase)).toEqual(["Pending"]);
    await api.deleteNamespacedPod({ namespace: "default", name: "a" });
    expect(await codeOf(api.readNamespacedPod({ namespace: "default", name: "a" }))).toBe(404);
    expect(await codeOf(api.createNamespacedPod({ namespace: "none", body: pod("x") }))).toBe(404);
  });

  it("checks and defaults what it stores", async () => {
    const created = await create("a");
    expect(created.metadata).toMatchObject({ generation: 1, namespace: "default" });
    expect(created.spec?.restartPolicy).toBe("Always");
    expect(await codeOf(api.createNamespacedPod({ namespace: "default", body: pod("A") }))).toBe(422);
  });

  it("refuses a stale update, raises the generation with the spec, and keeps the status apart", async () => {
    const stale = await create("a");
    const body = { metadata: { labels: { a: "b" } } };
    const patched = await api.patchNamespacedPod({ namespace: "default", name: "a", body }, merge);
    expect(patched.metadata?.generation).toBe(1);
    expect(await codeOf(api.replaceNamespacedPod({ namespace: "default", name: "a", body: stale }))).toBe(
      409,
    );
    const next = structuredClone(patched);
    Object.assign(next.spec?.containers[0] ?? {}, { image: "j" });
    Object.assign(next.status ?? {}, { phase: "Running" });
    const updated = await api.replaceNamespacedPod({ namespace: "default", name: "a", body: next });
    expect([updated.metadata?.generation, updated.status?.phase]).toEqual([2, "Pending"]);
    const status = { spec: { nodeName: "n" }, status: { phase: "Running" } };
    const done = await api.patchNamespacedPodStatus({ namespace: "default", name: "a", body: status }, merge);
    expect([done.metadata?.generation, done.status?.phase, done.spec?.nodeName]).toEqual([
      2,
      "Running",
      undefined,
    ]);
  });

  it("takes JSON patches and strategic ones", async () => {
    await create("a");
    const strategic = {
      spec: { containers: [{ name: "main", image: "j" }] },
      metadata: { labels: { x: "y" } },
    };
    const patchOf = (body: object, type: string) =>
      api.patchNamespacedPod(
        { namespace: "default", name: "a", body },
        setHeaderOptions("Content-Type", type),
      );
    const merged = await patchOf(strategic, PatchStrategy.StrategicMergePatch);
    expect(merged.spec?.containers).toEqual([expect.objectContaining({ name: "main", image: "j" })]);
    const edited = await patchOf(
      [{ op: "replace", path: "/metadata/labels/x", value: "z" }],
      PatchStrategy.JsonPatch,
    );
    expect(edited.metadata?.labels).toEqual({ x: "z" });
    expect(await codeOf(patchOf({}, "application/apply-patch+yaml"))).toBe(415);
  });

  it("watches: from a version, by selectors, with bookmarks, to its time-out", async () => {
    const { metadata } = await create("a");
    await create("b");
    await api.deleteNamespacedPod({ namespace: "default", name: "a" });
    const version = metadata?.resourceVersion ?? "";
    const path = "/api/v1/namespaces/default/pods";
    expect(await watch(path, { resourceVersion: version }, 2)).toEqual(["ADDED b", "DELETED a"]);
    expect(await watch(path, { timeoutSeconds: "1" }, 99)).toEqual(["ADDED b"]);
    const events = watch(
      path,
      { resourceVersion: version, allowWatchBookmarks: "true", fieldSelector: "metadata.name=c" },
      2,
    );
    await eventually("the watch is open", () => server.watches.size > 0);
    await create("c");
    server.watches.sendBookmarks();
    expect(await events).toEqual(["ADDED c", "BOOKMARK Pod"]);
  });

  it("says 410 for a past that it has forgotten", async () => {
    const { metadata } = await create("a");
    await create("b");
    server.store.compact();
    const path = "/api/v1/pods";
    await expect(watch(path, { resourceVersion: metadata?.resourceVersion ?? "" }, 1)).rejects.toMatchObject({
      statusCode: 410,
    });
  });

  it("keeps an informer up to date", async () => {
    await create("a");
    const informer = makeInformer(config, "/api/v1/namespaces/default/pods", () =>
      api.listNamespacedPod({ namespace: "default" }),
    );
    await informer.start();
    await create("b");
    await api.deleteNamespacedPod({ namespace: "default", name: "a" });
    await eventually(
      "b alone",
      () =>
        informer
          .list()
          .map(({ metadata }) => metadata?.name)
          .join() === "b",
    );
    await informer.stop();
  });

  it("reviews tokens and access", async () => {
    const reviewing = await TestApiServer.start({
      tokens: { t: { username: "jane", groups: ["dev"] } },
      allows: ({ user, verb }) => user === "jane" && verb === "get",
      enforces: true,
    });
    const post = async (path: string, spec: object, token = "t") => {
      const response = await fetch(reviewing.url + path, {
        method: "POST",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body: JSON.stringify({ spec }),
      });
      return { code: response.status, status: ((await response.json()) as { status: unknown }).status };
    };
    const tokens = "/apis/authentication.k8s.io/v1/tokenreviews";
    const access = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    expect(await post(tokens, { token: "t" })).toMatchObject({
      code: 201,
      status: { authenticated: true, user: { username: "jane" } },
    });
    expect(await post(tokens, { token: "x" })).toMatchObject({ status: { authenticated: false } });
    const get = { user: "jane", resourceAttributes: { verb: "get", resource: "pods" } };
    expect(await post(access, get)).toMatchObject({ status: { allowed: true } });
    expect(await post(tokens, {}, "wrong")).toMatchObject({ code: 401 });
    expect(await post("/api/v1/namespaces/default/pods", {})).toMatchObject({ code: 403 });
    await reviewing.stop();
  });

  it("fails when it is told to, and comes back on its port", async () => {
    const get = () => fetch(`${server.url}/api/v1/pods`);
    server.faults.add("429", { times: 1 });
    const refused = await get();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    server.faults.add("garbage");
    await expect((await get()).json()).rejects.toThrow();
    server.faults.add("cut");
    await expect(get().then((response) => response.json())).rejects.toThrow();
    await create("a");
    const { url } = server;
    await server.stop();
    await expect(get()).rejects.toThrow();
    await server.listen();
    expect(server.url).toBe(url);
    expect(((await (await get()).json()) as { items: unknown[] }).items).toHaveLength(1);
  });
});
