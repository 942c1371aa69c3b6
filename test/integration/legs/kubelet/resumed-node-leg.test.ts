import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import {
  type Executor,
  execPath,
  SpdyExecutor,
  Target,
  TunnelDialer,
  WebSocketExecutor,
} from "../../../../packages/client/src/index.ts";
import { openCat, throughCat } from "../../../support/cat-session.ts";
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from "../../../support/fault-proxy.ts";
import { TESTER_TOKEN, webOn } from "../../../support/gateway-files.ts";
import { RuntimeNode } from "../../../support/runtime-node.ts";
import { endExec, type KubeletScript, SUCCESS } from "../../../support/scripted-kubelet.ts";
import { startTestGateway, type TestGateway } from "../../../support/test-gateway.ts";

const MIB = 1024 * 1024;
const COMMAND = execPath({ namespace: "default", pod: "web", container: "main" }, ["cat"]);
const NO_CUTS = { cutAfterBytes: Number.POSITIVE_INFINITY, maxCuts: 0 };

const stops: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** A runtime that sends back what it gets: stdin as stdout, and the bytes of forwarded connections. */
const echo: KubeletScript = {
  onData: (name, part, fin, session) => {
    const to = name === "stdin" ? "stdout" : name.startsWith("data") ? name : undefined;
    if (to === undefined) return;
    if (part.byteLength > 0) session.streams.get(to)?.write(Uint8Array.from(part));
    if (fin && name === "stdin") endExec(session, SUCCESS);
    if (fin && name !== "stdin") session.streams.get(to)?.finish();
  },
};

interface Edge {
  readonly gateway: TestGateway;
  readonly node: RuntimeNode;
  readonly proxy: FaultProxy;
  readonly target: Target;
}

/** A gateway for clients before a kubelet listener of ours, which has nothing but a network that loses connections between them. */
async function start(cuts: FaultProxyOptions, { streaming = "auto", resumption = {} } = {}): Promise<Edge> {
  const node = await RuntimeNode.start({
    streaming: echo,
    listener: { authentication: { anonymous: { enabled: true } }, authorization: { mode: ["AlwaysAllow"] } },
  });
  const proxy = await startFaultProxy(Number(node.authority.split(":")[1]), cuts);
  const gateway = await startTestGateway({
    scheme: "http",
    ...webOn(proxy.port, ["ExtendWebSocketsToKubelet"]),
    kubelet: { streaming: { mode: streaming } },
    timeouts: { shutdownGracePeriod: "0s" },
    configuration: { resumption },
  });
  stops.push(
    () => node.stop(),
    () => proxy.close(),
    () => gateway.stop(),
  );
  const target = new Target({
    url: gateway.apiServerUrl,
    proxy: "none",
    headers: () => [["Authorization", `Bearer ${TESTER_TOKEN}`]],
  });
  return { gateway, node, proxy, target };
}

async function metric({ gateway }: Edge, name: string): Promise<number | undefined> {
  return (await gateway.readMetrics()).get(name);
}

async function isWhole(executor: Executor, input: Buffer): Promise<boolean> {
  const { isWhole: isSame, exitCode } = await throughCat(executor, input);
  return exitCode === 0 && isSame;
}

function running({ target }: Edge) {
  return openCat(new WebSocketExecutor(target, COMMAND));
}

describe("a gateway before a node that is a Sluice, over connections that are cut 50 times", () => {
  it.each([
    ["WebSocket v5 passed through", "auto", (target: Target) => new WebSocketExecutor(target, COMMAND)],
    ["SPDY bridged", "websocket-only", (target: Target) => new SpdyExecutor(target, COMMAND)],
  ])("brings every byte of %s once, to clients that know nothing of it", async (_name, streaming, executorOf) => {
    const edge = await start({ cutAfterBytes: 300_000, maxCuts: 50 }, { streaming });
    expect(await isWhole(executorOf(edge.target), randomBytes(10 * MIB))).toBe(true);
    expect(edge.proxy.cuts).toBe(50);
    expect(
      await metric(edge, 'sluice_node_session_connections_total{event="resumed"}'),
    ).toBeGreaterThanOrEqual(50);
    await expect.poll(() => metric(edge, "sluice_resumable_node_sessions")).toBe(0);
    expect(edge.node.runtime.callsOf("Exec")).toHaveLength(1);
  });

  it("and of a port-forward", async () => {
    const edge = await start({ cutAfterBytes: 300_000, maxCuts: 50 });
    const path = "/api/v1/namespaces/default/pods/web/portforward";
    const connection = await new TunnelDialer(edge.target, path).dial();
    stops.push(() => connection.close());
    const echoed = async (input: Buffer): Promise<boolean> => {
      const stream = connection.openStream(80);
      const output: Buffer[] = [];
      stream.on("data", (part: Buffer) => output.push(Buffer.from(part)));
      const ended = new Promise((resolve, reject) => stream.once("end", resolve).once("error", reject));
      Readable.from([input]).pipe(stream);
      await ended;
      return Buffer.concat(output).equals(input);
    };
    const inputs = Array.from({ length: 6 }, () => randomBytes(2 * MIB));
    expect(await Promise.all(inputs.map(echoed))).toEqual(inputs.map(() => true));
    expect(edge.proxy.cuts).toBe(50);
    expect(edge.node.runtime.callsOf("PortForward")).toHaveLength(1);
  });
});

describe("a session with a node that is a Sluice", () => {
  it("waits for a node that can not be reached for a while", async () => {
    const edge = await start(NO_CUTS);
    const { stdin, shown, ended } = running(edge);
    stdin.write("before ");
    await expect.poll(shown).toBe("before ");
    edge.proxy.isRefusing = true;
    edge.proxy.cutAll();
    stdin.write("meanwhile ");
    await expect.poll(() => metric(edge, 'sluice_node_session_connections_total{event="lost"}')).toBe(1);
    edge.proxy.isRefusing = false;
    stdin.end("after");
    expect((await ended).exitCode).toBe(0);
    expect(shown()).toBe("before meanwhile after");
  });

  it("ends with a failure when the node was started again, and no success is made up", async () => {
    const edge = await start(NO_CUTS);
    const { stdin, shown, ended } = running(edge);
    stdin.write("before");
    await expect.poll(shown).toBe("before");
    const other = await RuntimeNode.start({
      streaming: echo,
      listener: {
        authentication: { anonymous: { enabled: true } },
        authorization: { mode: ["AlwaysAllow"] },
      },
    });
    stops.push(() => other.stop());
    edge.proxy.targetPort = Number(other.authority.split(":")[1]);
    edge.proxy.cutAll();
    await expect(ended).rejects.toThrow();
    expect(other.runtime.callsOf("Exec")).toHaveLength(0);
    await expect.poll(() => edge.gateway.running.sessions.list()).toEqual([]);
    stdin.destroy();
  });

  it("is as any other where there is no more room, and where resumption is off", async () => {
    const edge = await start(NO_CUTS, { resumption: { maxSessions: 1 } });
    const first = running(edge);
    first.stdin.write("1");
    await expect.poll(first.shown).toBe("1");
    const second = running(edge);
    second.stdin.write("2");
    await expect.poll(second.shown).toBe("2");
    expect(await metric(edge, "sluice_resumable_node_sessions")).toBe(1);
    first.stdin.end();
    await first.ended;
    await expect.poll(() => metric(edge, "sluice_resumable_node_sessions")).toBe(0);
    second.stdin.end();
    expect((await second.ended).exitCode).toBe(0);

    const off = await start(NO_CUTS, { resumption: { enabled: false } });
    const third = running(off);
    third.stdin.end("3");
    expect((await third.ended).exitCode).toBe(0);
    expect(await metric(off, "sluice_resumable_node_sessions")).toBe(0);
  });

  it("does not hold up a shutdown while its node is away", async () => {
    const edge = await start(NO_CUTS);
    const { stdin, shown, ended } = running(edge);
    stdin.write("before");
    await expect.poll(shown).toBe("before");
    edge.proxy.isRefusing = true;
    edge.proxy.cutAll();
    await edge.gateway.shutDown();
    await expect(ended).rejects.toThrow();
    stops.pop();
    stdin.destroy();
  });
});
