import { describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { ALL_KINDS, pod, startLive } from "./live.ts";

// The bound under test.
const LIST_PAGE_SIZE = 500;

const isList = ({ path, isWatch }: { path: string; isWatch: boolean }) => path.endsWith("/pods") && !isWatch;
const isWatch = ({ path, isWatch }: { path: string; isWatch: boolean }) => path.endsWith("/pods") && isWatch;

describe("the live cluster", () => {
  it("lists every kind and follows its changes", async () => {
    const { server, store, synced, hasPods } = await startLive({
      kinds: ALL_KINDS,
      prepare: (api) => {
        api.apply(pod("a"));
        api.apply({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } });
      },
    });
    await synced();
    expect([store.getPod("default", "a")?.spec.nodeName, store.getNode("n")?.kind]).toEqual(["n", "Node"]);
    expect(store.list("Namespace").map(({ metadata }) => metadata.name)).toEqual(["default", "kube-system"]);
    server.apply(pod("b"));
    await hasPods("a,b");
    server.apply(pod("a", { status: { phase: "Failed" } }));
    server.remove("Pod", "default", "b");
    await hasPods("a");
    expect(store.getPod("default", "a")?.status?.phase).toBe("Failed");
    const role = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", metadata: { name: "r" } };
    server.apply({ ...role, rules: [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }] });
    await eventually("the role", () => store.listRbacObjects().length === 1);
  });

  it("follows a kind in one namespace alone", async () => {
    const slice = (namespace: string) => ({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: "peers", namespace },
      addressType: "IPv4",
      endpoints: [],
    });
    const { server, store, synced } = await startLive({
      kinds: ["EndpointSlice"],
      namespaces: { EndpointSlice: "kube-system" },
      prepare: (api) => api.apply(slice("default")),
    });
    await synced();
    server.apply(slice("kube-system"));
    await eventually("the slice", () => store.list("EndpointSlice").length === 1);
    expect(store.list("EndpointSlice")[0]?.metadata.namespace).toBe("kube-system");
    const asked = new Set(server.requests.map(({ path }) => path));
    expect([...asked]).toEqual(["/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"]);
  });

  it("lists by pages", async () => {
    const { server, store, synced } = await startLive({
      prepare: (api) => {
        for (let index = 0; index < 2 * LIST_PAGE_SIZE + 1; index++) api.apply(pod(`p${index}`));
      },
    });
    await synced();
    expect(store.listPods()).toHaveLength(2 * LIST_PAGE_SIZE + 1);
    expect(server.requests.filter(isList)).toHaveLength(3);
  });

  it("keeps what it needs of an object and nothing else", async () => {
    const annotations = { a: "b", "kubectl.kubernetes.io/last-applied-configuration": "{}" };
    const { store, synced } = await startLive({
      prepare: (api) => {
        const env = [{ name: "PASSWORD", value: "secret" }];
        api.apply({
          ...pod("a"),
          metadata: { name: "a", annotations, managedFields: [{}] },
          spec: { nodeName: "n", containers: [{ name: "main", image: "i", env }], volumes: [{ name: "v" }] },
        });
        api.apply({
          apiVersion: "v1",
          kind: "Node",
          metadata: { name: "n" },
          status: { images: [{}], addresses: [] },
        });
      },
    });
    await synced();
    const kept = store.getPod("default", "a");
    expect(kept?.spec).toEqual({ nodeName: "n", containers: [{ name: "main", image: "i" }] });
    expect([kept?.metadata.annotations, kept?.metadata.managedFields]).toEqual([{ a: "b" }, undefined]);
    expect(store.getNode("n")?.status).toEqual({ addresses: [] });
  });

  it.each<[string, (live: Awaited<ReturnType<typeof startLive>>) => Promise<void> | void]>([
    ["watches break off", ({ server }) => server.watches.drop()],
    ["watches end", ({ server }) => server.watches.end()],
    ["an event is garbage", ({ server }) => server.watches.garble()],
    [
      "the server restarts",
      async ({ server }) => {
        await server.stop();
        await server.listen();
      },
    ],
  ])("goes on where it stopped when %s, without a new list", async (_, fail) => {
    const live = await startLive({ prepare: (api) => void api.apply(pod("a")) });
    const { server, hasPods, synced } = live;
    await synced();
    await eventually("both are watched", () => server.watches.size === 2);
    await fail(live);
    server.apply(pod("b"));
    server.remove("Pod", "default", "a");
    await hasPods("b");
    expect(server.requests.filter(isList)).toHaveLength(1);
  });

  it.each<[string, (live: Awaited<ReturnType<typeof startLive>>) => void]>([
    [
      "when it comes back",
      ({ server }) => {
        server.store.compact();
        server.watches.drop();
      },
    ],
    [
      "in the watch",
      ({ server }) => {
        server.store.compact();
        server.watches.expire();
      },
    ],
  ])("lists again after 410 %s, and forgets nothing meanwhile", async (_, expire) => {
    const live = await startLive({ prepare: (api) => void [api.apply(pod("a")), api.apply(pod("b"))] });
    const { server, store, hasPods, synced, metric } = live;
    await synced();
    await eventually("both are watched", () => server.watches.size === 2);
    const removed: string[] = [];
    store.subscribe(({ type, object }) => void (type === "DELETED" && removed.push(object.metadata.name)));
    server.faults.add("503", { times: 2, on: isList });
    server.apply(pod("c"));
    await hasPods("a,b,c");
    server.watches.isSilent = true;
    server.remove("Pod", "default", "b");
    server.watches.isSilent = false;
    expire(live);
    await hasPods("a,c");
    expect(removed).toEqual(["b"]);
    expect(await metric(/sluice_cluster_lists_total\{kind="Pod"\} (\d+)/)).toBe("2");
    expect(
      Number(await metric(/sluice_cluster_watch_ends_total\{kind="Pod",how="gone"\} (\d+)/)),
    ).toBeGreaterThan(0);
  });

  it("begins a list anew when its pages expire, break off or are garbage", async () => {
    const { server, synced, store } = await startLive({
      prepare: (api) => {
        for (let index = 0; index <= LIST_PAGE_SIZE; index++) api.apply(pod(`p${index}`));
        api.faults.add("410", { on: ({ query }) => query.has("continue") });
        api.faults.add("cut", { on: isList });
        api.faults.add("garbage", { on: isList });
      },
    });
    await synced();
    expect(store.listPods()).toHaveLength(LIST_PAGE_SIZE + 1);
    expect(server.faults.inflicted).toBe(3);
  });

  it("asks for smaller pages when one is too large", async () => {
    const { server, synced, store } = await startLive({
      maxAnswerBytes: 20_000,
      prepare: (api) => {
        for (let index = 0; index < 100; index++) api.apply(pod(`p${index}`));
      },
    });
    await synced();
    expect(store.listPods()).toHaveLength(100);
    const limits = server.requests.filter(isList).map(({ query }) => Number(query.get("limit")));
    expect(Math.min(...limits)).toBeLessThan(LIST_PAGE_SIZE);
  });

  it("waits as long as a 429 asks", async () => {
    const { server, synced, hasPods } = await startLive();
    await synced();
    await eventually("both are watched", () => server.watches.size === 2);
    server.faults.add("429", { on: isWatch });
    const before = performance.now();
    server.watches.drop();
    server.apply(pod("a"));
    await hasPods("a");
    expect(performance.now() - before).toBeGreaterThan(1_000);
  });

  it("gives up a watch of which nothing is heard past its time", async () => {
    const { server, hasPods, synced } = await startLive({
      tuning: { minWatchSeconds: 1, watchEndGraceMs: 50 },
    });
    await synced();
    await eventually("both are watched", () => server.watches.size === 2);
    server.watches.isSilent = true;
    server.apply(pod("a"));
    const begun = server.watches.begun;
    await eventually("new watches", () => server.watches.begun > begun);
    server.watches.isSilent = false;
    await hasPods("a");
  });

  it("begins a silent watch again, and a watch whose server hangs as well", async () => {
    const { server, live, hasPods, lines, synced } = await startLive({
      tuning: { watchSilenceMs: 50, watchOpenMs: 50 },
    });
    await synced();
    await eventually("both are watched", () => server.watches.size === 2);
    server.watches.isSilent = true;
    server.apply(pod("a"));
    const begun = server.watches.begun;
    await eventually("new watches", () => server.watches.begun > begun);
    server.watches.isSilent = false;
    await hasPods("a");
    // A quiet server is no failure.
    expect(lines.filter((line) => line.startsWith("the Kubernetes API is not watched"))).toEqual([]);
    server.faults.add("silence", { times: Number.POSITIVE_INFINITY, on: isWatch });
    await eventually("the age grows", () => live.staleMs > 100);
    server.faults.clear();
    server.apply(pod("b"));
    await hasPods("a,b");
  });

  it("tells how old its state is while the API is away", async () => {
    const { server, live, metric, synced, podNames } = await startLive({
      prepare: (api) => void api.apply(pod("a")),
    });
    await synced();
    await eventually("both are watched", () => server.watches.size === 2);
    await eventually("both have answered", () => live.staleMs === 0);
    await server.stop();
    await eventually("it is noticed", () => live.staleMs > 50);
    expect(podNames()).toBe("a");
    expect(Number(await metric(/sluice_cluster_stale_seconds\{kind="Pod"\} (\S+)/))).toBeGreaterThan(0);
    await server.listen();
    await eventually("it is watched again", () => live.staleMs === 0);
  });

  it("follows the Secrets that Ingresses name, and no others", async () => {
    const secret = (name: string, value: string) => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name },
      type: "kubernetes.io/tls",
      data: { "tls.crt": value },
    });
    const ingress = (...names: string[]) => ({
      apiVersion: "networking.k8s.io/v1",
      kind: "Ingress",
      metadata: { name: "i" },
      spec: { tls: names.map((secretName) => ({ secretName })) },
    });
    const { server, store, synced } = await startLive({
      kinds: ALL_KINDS,
      prepare: (api) => {
        api.apply(secret("named", "QQ=="));
        api.apply(secret("other", "QQ=="));
        api.apply(ingress("named"));
      },
    });
    await synced();
    const held = () =>
      store
        .list("Secret")
        .map(({ metadata, data }) => `${metadata.name}=${data?.["tls.crt"]}`)
        .join();
    const holds = (text: string) =>
      eventually(
        () => `secrets ${text}, not ${held()}`,
        () => held() === text,
      );
    await holds("named=QQ==");
    server.apply(secret("named", "Qg=="));
    await holds("named=Qg==");
    server.apply(ingress("other", "missing"));
    await holds("other=QQ==");
    server.apply(secret("missing", "Qw=="));
    await holds("missing=Qw==,other=QQ==");
    const asked = server.requests.filter(({ path }) => path.endsWith("/secrets"));
    expect(asked.every(({ query }) => query.get("fieldSelector")?.startsWith("metadata.name="))).toBe(true);
  });

  it("says what it is not allowed to see, and sees it once it may", async () => {
    let isAllowed = false;
    const { live, lines, synced } = await startLive({
      tokens: { t: { username: "sluice", groups: [] } },
      token: "t",
      enforces: true,
      allows: ({ resource }) => resource !== "nodes" || isAllowed,
    });
    await eventually("the refusal", () =>
      lines.some((line) => /not watched.*"kind":"Node".*cannot list resource/.test(line)),
    );
    expect(live.unsynced).toEqual(["Node"]);
    isAllowed = true;
    await synced();
  });
});
