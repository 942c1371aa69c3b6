import { createServer } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { TESTER_TOKEN, webOn } from "../../../support/gateway-files.ts";
import {
  afterHead,
  closeServer,
  listen,
  listenRaw,
  openClient,
  openSocketCount,
  readToEnd,
} from "../../../support/http/loopback.ts";
import { endExec, type KubeletScript, ScriptedKubelet, SUCCESS } from "../../../support/scripted-kubelet.ts";
import { startSpdyExec } from "../../../support/spdy-exec-client.ts";
import {
  startTestGateway,
  type TestGateway,
  type TestGatewayOptions,
} from "../../../support/test-gateway.ts";
import { TunnelClient } from "../../../support/tunnel-client.ts";
import { V5Client } from "../../../support/v5-client.ts";

const AUTHORIZED = { Authorization: `Bearer ${TESTER_TOKEN}` };
const SHUTTING_DOWN = "Internal error occurred: the gateway is shutting down";

let gateway: TestGateway | undefined;
const nodes: { close(): Promise<void> }[] = [];

/** Listeners and connections of this process. That no timer is left is shown by a real process that ends (serve.test.ts). */
const handles = (): string[] => process.getActiveResourcesInfo().filter((kind) => /^(TCP|TLS)/.test(kind));

afterEach(async () => {
  await gateway?.stop();
  for (const node of nodes.splice(0)) await node.close();
  gateway = undefined;
});

async function startWith(options: TestGatewayOptions): Promise<string> {
  gateway = await startTestGateway({ scheme: "http", ...options });
  return gateway.authority;
}

async function startScripted(script: KubeletScript, gracePeriod: string): Promise<[string, ScriptedKubelet]> {
  const kubelet = new ScriptedKubelet(script);
  nodes.push(kubelet);
  const timeouts = { shutdownGracePeriod: gracePeriod };
  return [await startWith({ ...webOn(await kubelet.listen()), timeouts }), kubelet];
}

async function runningSessions(): Promise<number> {
  const sessions = await (await fetch(`${gateway?.adminUrl}/debug/sessions`)).json();
  return (sessions as unknown[]).length;
}

/** Shuts down, and checks that nothing of the gateway is left in this process once its nodes are gone. */
async function shutDownWhole(): Promise<void> {
  await gateway?.stop();
  gateway = undefined;
  for (const node of nodes.splice(0)) await node.close();
  await expect.poll(handles).toEqual([]);
}

describe("draining", () => {
  it("readiness goes, new upgrades get 503, a running session finishes with its own status", async () => {
    const [authority, kubelet] = await startScripted({}, "20s");
    const client = new V5Client(authority, "stdin=true&stdout=true", "exec", AUTHORIZED);
    await client.opened;
    await expect.poll(() => kubelet.sessions[0]?.streams.size).toBe(3);
    expect((await fetch(`${gateway?.adminUrl}/readyz`)).status).toBe(200);
    const stopped = gateway?.shutDown();

    await expect.poll(async () => (await fetch(`${gateway?.adminUrl}/readyz`)).status).toBe(500);
    expect((await fetch(`${gateway?.apiServerUrl}/readyz`)).status).toBe(500);
    expect((await fetch(`${gateway?.adminUrl}/livez`)).status).toBe(200);
    const late = new V5Client(authority, "stdout=true", "exec", AUTHORIZED);
    await expect(late.opened).rejects.toThrow("Unexpected server response: 503");
    const { status, body } = await TunnelClient.refused(authority, { headers: AUTHORIZED });
    expect([status, JSON.parse(body)]).toMatchObject([503, { kind: "Status", reason: "ServiceUnavailable" }]);
    expect(kubelet.sessions.length).toBe(1);

    const [session] = kubelet.sessions;
    session?.streams.get("stdout")?.write(Buffer.from("to the end"));
    if (session) endExec(session, SUCCESS);
    const result = await client.done;
    expect([result.stdout.toString(), result.status, result.closeCode]).toEqual([
      "to the end",
      SUCCESS,
      1000,
    ]);
    await stopped;
  });

  it("serves on for shutdownDelay without readiness, and closes each connection behind its answer", async () => {
    const kubelet = new ScriptedKubelet({});
    nodes.push(kubelet);
    const timeouts = { shutdownDelay: "1s", shutdownGracePeriod: "20s" };
    const authority = await startWith({ ...webOn(await kubelet.listen()), timeouts });
    const stopped = gateway?.shutDown();
    await expect.poll(async () => (await fetch(`${gateway?.adminUrl}/readyz`)).status).toBe(500);
    const answer = await fetch(`${gateway?.apiServerUrl}/version`, { headers: AUTHORIZED });
    expect([answer.status, answer.headers.get("connection")]).toEqual([200, "close"]);
    // A balancer that has not noticed yet sends sessions, too.
    const client = new V5Client(authority, "stdin=true&stdout=true", "exec", AUTHORIZED);
    await client.opened;
    await expect.poll(() => kubelet.sessions[0]?.streams.size).toBe(3);
    const [session] = kubelet.sessions;
    if (session) endExec(session, SUCCESS);
    expect((await client.done).status).toBe(SUCCESS);
    await stopped;
  });

  it("without sessions it is over at once, and nothing is left", async () => {
    await startScripted({}, "20s");
    await fetch(`${gateway?.apiServerUrl}/version`);
    await shutDownWhole();
  });
});

describe("after the grace period", () => {
  it("translate: a Failure that says so, then 1000", async () => {
    const [authority, kubelet] = await startScripted({}, "0s");
    const client = new V5Client(authority, "stdin=true&stdout=true", "exec", AUTHORIZED);
    await client.opened;
    await expect.poll(runningSessions).toBe(1);
    await expect.poll(() => kubelet.sessions[0]?.streams.size).toBe(3);
    await shutDownWhole();
    const { status, closeCode } = await client.done;
    expect(JSON.parse(status)).toMatchObject({ status: "Failure", message: SHUTTING_DOWN, code: 500 });
    expect(closeCode).toBe(1000);
  });

  it("tunnel: not 1000", async () => {
    const [authority] = await startScripted({}, "0s");
    const client = await TunnelClient.open(authority, { headers: AUTHORIZED });
    await expect.poll(runningSessions).toBe(1);
    await shutDownWhole();
    expect((await client.closed).code).toBe(1001);
  });

  it("SPDY that passes through: the last word on the error stream", async () => {
    const [authority] = await startScripted({}, "0s");
    const client = await startSpdyExec(authority, AUTHORIZED);
    await expect.poll(client.isReplied).toBe(true);
    await shutDownWhole();
    await client.ended;
    expect(JSON.parse(client.received.error)).toMatchObject({ status: "Failure", message: SHUTTING_DOWN });
  });

  it("WebSocket that passes through: a failure that says so, then 1000", async () => {
    const raw = await listenRaw((socket) => {
      afterHead(socket, () =>
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
      );
    });
    nodes.push(raw);
    const authority = await startWith({ ...webOn(raw.port), timeouts: { shutdownGracePeriod: "0s" } });
    const socket = await openClient(Number(authority.split(":")[1]));
    const outcome = readToEnd(socket);
    socket.write(
      `GET /api/v1/namespaces/default/pods/web/exec?stdout=1 HTTP/1.1\r\nHost: g\r\nAuthorization: ${AUTHORIZED.Authorization}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    await expect.poll(runningSessions).toBe(1);
    let received = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
    });
    await shutDownWhole();
    await outcome;
    const closeFrame = Buffer.from("880203e8", "hex");
    const text = `\u0003${SHUTTING_DOWN}`;
    expect(received.includes(Buffer.concat([Buffer.from(text), closeFrame]))).toBe(true);
  });

  it("a client that is still waiting for its node is answered or cut, and the node let go", async () => {
    const [authority] = await startScripted({ isSilent: true }, "0s");
    const client = new V5Client(authority, "stdout=true", "exec", AUTHORIZED);
    const outcome = expect(client.opened).rejects.toThrow();
    await expect.poll(() => nodes.length && openSocketCount() > 0).toBe(true);
    await shutDownWhole();
    await outcome;
  });

  it("a client that reads nothing and never closes does not hold the process", async () => {
    const [authority, kubelet] = await startScripted({}, "0s");
    const client = new V5Client(authority, "stdin=true&stdout=true", "exec", AUTHORIZED);
    await client.opened;
    await expect.poll(() => kubelet.sessions[0]?.streams.size).toBe(3);
    client.socket.pause();
    kubelet.sessions[0]?.streams.get("stdout")?.write(Buffer.alloc(16 * 1024 * 1024));
    await expect.poll(runningSessions).toBe(1);
    const startMs = performance.now();
    await gateway?.shutDown();
    gateway = undefined;
    expect(performance.now() - startMs).toBeLessThan(5_000);
    client.socket.terminate();
  });

  it("an upgrade that was forwarded to the API server is broken as well", async () => {
    const apiServer = createServer();
    const upgraded = new Set<import("node:stream").Duplex>();
    apiServer.on("upgrade", (_request, socket) => {
      upgraded.add(socket);
      socket.on("error", () => {});
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    });
    const url = `http://127.0.0.1:${await listen(apiServer)}`;
    nodes.push({ close: () => closeServer(apiServer, upgraded as never) });
    const timeouts = { shutdownGracePeriod: "0s" };
    const authority = await startWith({ timeouts, configuration: { upstreamAPIServer: { url } } });
    const socket = await openClient(Number(authority.split(":")[1]));
    const outcome = readToEnd(socket);
    socket.write(
      `GET /api/v1/namespaces/default/pods/web/proxy/ws HTTP/1.1\r\nHost: g\r\nAuthorization: ${AUTHORIZED.Authorization}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    await expect.poll(() => upgraded.size).toBe(1);
    await expect.poll(() => socket.bytesRead).toBeGreaterThan(0);
    await shutDownWhole();
    expect((await outcome).isClean).toBe(false);
  });
});
