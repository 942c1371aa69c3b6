import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { Kubeconfig } from "../../../packages/client/src/kubernetes/kubeconfig.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { ApiClient } from "../../../src/kubernetes/api-client.ts";
import { LiveCluster } from "../../../src/kubernetes/live-cluster.ts";
import { Backoff } from "../../../src/net/backoff.ts";
import { Metrics } from "../../../src/observability/metrics.ts";
import { eventually } from "../../support/eventually.ts";
import { type Act, endlessly, FAULTS, OK, slowly, withLength } from "../../support/hostile-acts.ts";
import { pod } from "./live.ts";

const TIMEOUT_MS = 300;
/** What a busy machine may add to the timeout. */
const SPARE_MS = 3_000;
/** How much of an endless answer a list or watch may take, with both systems' buffers. */
const MAX_TAKEN_BYTES = 32 * 1024 * 1024;
const WATCH_OK = `${OK}Transfer-Encoding: chunked\r\n\r\n`;

const named = (name: string) => pod(name, { metadata: { name, namespace: "default", resourceVersion: "1" } });
const listOf = (...names: string[]) =>
  JSON.stringify({ kind: "PodList", metadata: { resourceVersion: "1" }, items: names.map(named) });
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const lines = (...each: unknown[]): string =>
  chunk(each.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""));
const says =
  (...each: unknown[]): Act =>
  (socket) =>
    void socket.write(WATCH_OK + lines(...each));

let server: Server;
let port: number;
let list: Act;
let watch: Act;
let requests: string[] = [];
const sockets = new Set<Socket>();
const unhandled: unknown[] = [];
const note = (reason: unknown): number => unhandled.push(reason);
const honestList: Act = (socket) => void socket.write(withLength(listOf("a")));
const honestWatch: Act = (socket) => void socket.write(WATCH_OK);

beforeAll(async () => {
  server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket
      .on("error", () => {})
      .on("data", (head) => {
        const [line = ""] = head.toString("latin1").split("\r\n");
        requests.push(line);
        (line.includes("watch=true") ? watch : list)(socket, listOf("a"));
      });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
  process.on("unhandledRejection", note);
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  requests = [];
  expect(unhandled).toEqual([]);
});
afterAll(() => {
  process.off("unhandledRejection", note);
  server.close();
});

function clientOf(): ApiClient {
  const kubeconfig = {
    server: `http://127.0.0.1:${port}`,
    tls: {},
    headers: async () => [],
    forget: () => {},
  };
  return new ApiClient({
    kubeconfig: kubeconfig as unknown as Kubeconfig,
    dialTimeoutMs: TIMEOUT_MS,
    answerTimeoutMs: TIMEOUT_MS,
    maxAnswerBytes: 1024 * 1024,
  });
}

const taken = (): number => [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, 0);

/** Follows pods; waits and times are short. */
function follow() {
  const client = clientOf();
  const store = new ClusterStore();
  const logged: string[] = [];
  const log = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const live = new LiveCluster({
    maxStateAgeMs: 60_000,
    client,
    store,
    kinds: ["Pod"],
    metrics: new Metrics({ withProcessMetrics: false }).cluster,
    logger: { info: log, warn: log },
    reflector: {
      backoff: () => new Backoff({ firstMs: 20, maxMs: 100, random: () => 0.5 }),
      watchOpenMs: TIMEOUT_MS,
      watchSilenceMs: TIMEOUT_MS,
    },
  });
  const stop = async () => {
    await live.stop();
    client.close();
  };
  onTestFinished(stop);
  live.start();
  return { store, logged, stop, names: () => store.list("Pod").map(({ metadata }) => metadata.name) };
}

describe("a list", { timeout: 60_000 }, () => {
  it("that is hostile is refused in time, and the next honest one counts", async () => {
    const problems: string[] = [];
    for (const [name, fault] of Object.entries(FAULTS)) {
      const client = clientOf();
      list = fault;
      const startedMs = performance.now();
      const answer = await client.json({ path: "/api/v1/pods" }).catch((error: Error) => error);
      const isRefused = answer instanceof Error && answer.message.length > 5 && answer.message.length < 500;
      // An array and a redirect are read, and refused as lists.
      if (!isRefused && !Array.isArray(answer)) problems.push(`${name}: ${String(answer).slice(0, 200)}`);
      if (performance.now() - startedMs > TIMEOUT_MS + SPARE_MS) problems.push(`${name}: too long`);
      if (taken() > MAX_TAKEN_BYTES) problems.push(`${name}: took ${taken()} bytes`);
      list = honestList;
      await client.json({ path: "/api/v1/pods" }).catch((error) => problems.push(`${name}: then ${error}`));
      client.close();
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    }
    expect(problems).toEqual([]);
  });
});

const WATCH_FAULTS: Record<string, Act> = {
  ...Object.fromEntries(Object.entries(FAULTS).filter(([name]) => name !== "a redirect")),
  "a line without end": endlessly(WATCH_OK, chunk("a".repeat(60_000))),
  "a line byte by byte": slowly(WATCH_OK, chunk("a")),
  "an event in gzip": (socket) => socket.write(`${OK}Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\n`),
  "an event that is not UTF-8": (socket) =>
    socket.write(Buffer.concat([Buffer.from(`${OK}\r\n`), Buffer.from([0xff, 0xfe, 0x0a])])),
  "events of no type": says({ object: named("evil") }, {}, 7, null, []),
  "an event of another type": says({ type: "REPLACED", object: named("evil") }),
  "errors with odd codes": says({ type: "ERROR", object: { code: -1e300 } }),
  "an error of nothing": says({ type: "ERROR" }),
  "an expired version, each time": says({
    type: "ERROR",
    object: { kind: "Status", apiVersion: "v1", status: "Failure", code: 410 },
  }),
  "objects of no kind": says({ type: "ADDED" }, { type: "DELETED", object: 7 }, { type: "BOOKMARK" }, "x"),
  "versions that go backwards": says(
    { type: "BOOKMARK", object: { metadata: { resourceVersion: "-5" } } },
    { type: "BOOKMARK", object: { metadata: { resourceVersion: {} } } },
    "x",
  ),
  "a key twice": says('{"type":"ADDED","type":"ERROR","object":{"code":418}}'),
  "a refusal byte by byte": slowly("HTTP/1.1 503 No\r\n\r\n", "x"),
  "an end at once": (socket) => socket.end(`${WATCH_OK}0\r\n\r\n`),
};

describe("a watch", { timeout: 120_000 }, () => {
  it.each(
    Object.keys(WATCH_FAULTS),
  )("with %s is tried again with pauses, and the next honest one counts", async (name) => {
    list = honestList;
    watch = WATCH_FAULTS[name] as Act;
    const { names, logged } = follow();
    const watches = () => requests.filter((line) => line.includes("watch=true")).length;
    const startedMs = performance.now();
    await eventually(`a second watch after ${name}`, () => watches() > 2);
    expect(performance.now() - startedMs).toBeGreaterThan(19);
    expect(taken()).toBeLessThan(MAX_TAKEN_BYTES);
    expect(names()).toEqual(["a"]);
    list = (socket) => void socket.write(withLength(listOf("a", "b")));
    watch = says({ type: "ADDED", object: named("b") });
    for (const socket of sockets) socket.destroy();
    await eventually(`the honest watch after ${name}`, () => names().join() === "a,b");
    // A silent watch is no failure, and its end is none.
    if (!/at once|nothing|byte by byte/.test(name))
      expect(logged.join("\n")).toMatch(/is not watched .*"problem"/);
  });
});

it("a list whose items are none leaves what is one", async () => {
  watch = honestWatch;
  const odd = [
    null,
    7,
    "x",
    [],
    {},
    { metadata: null },
    { metadata: { name: {} } },
    { metadata: { name: "b" }, spec: 1 },
  ];
  const metadata = { resourceVersion: "1" };
  const body = JSON.stringify({ kind: "PodList", metadata, items: [...odd, named("a"), named("a")] });
  list = (socket) => void socket.write(withLength(body));
  const { names, logged } = follow();
  await eventually("the pod", () => names().join() === "a");
  expect(logged.filter((line) => line.startsWith("an object")).length).toBeGreaterThan(3);
});
