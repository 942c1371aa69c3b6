import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { HttpUpstream } from "../../../packages/client/src/http/upstream/http-upstream.ts";
import { listenRaw, openSocketCount, type RawUpstream, until } from "../../support/http/loopback.ts";
import { exchange, type Forwarder, startForwarder } from "./http-pair.ts";

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  await until(() => openSocketCount() === 0, "all sockets closed");
});

async function start(
  answer: string | ((socket: Socket, count: number) => void),
  options: Partial<ConstructorParameters<typeof HttpUpstream>[0]> = {},
): Promise<{ node: RawUpstream; forwarder: Forwarder }> {
  let count = 0;
  const node = await listenRaw((socket) => {
    socket.on("data", () => {
      if (typeof answer === "string") socket.write(answer);
      else answer(socket, ++count);
    });
    socket.on("end", () => socket.end());
  });
  const upstream = new HttpUpstream({ endpoint: { host: "127.0.0.1", port: node.port }, ...options });
  const forwarder = await startForwarder(node.port, { upstream });
  cleanups.push(forwarder.close, node.close);
  return { node, forwarder };
}

const GET = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";

async function ask(forwarder: Forwarder, times = 1): Promise<string> {
  let last = "";
  for (let count = 0; count < times; count++) last = (await exchange(forwarder.port, GET)).text;
  return last;
}

describe("Http1UpstreamPool", () => {
  it("carries many exchanges over one connection, up to the limit", async () => {
    const { node, forwarder } = await start(OK, { maxExchangesPerConnection: 3 });
    await ask(forwarder, 3);
    expect(node.sockets).toHaveLength(1);
    await until(() => node.sockets[0]?.destroyed === true, "connection closed behind its last exchange");
    await ask(forwarder, 2);
    expect(node.sockets).toHaveLength(2);
  });

  it("keeps no more idle connections than it may", async () => {
    const held: Socket[] = [];
    const { node, forwarder } = await start((socket) => held.push(socket), { maxIdleConnections: 2 });
    const asked = [ask(forwarder), ask(forwarder), ask(forwarder)];
    await until(() => held.length === 3, "three requests at once");
    for (const socket of held) socket.write(OK);
    await Promise.all(asked);
    await until(() => node.sockets.filter(({ destroyed }) => destroyed).length === 1, "the third closed");
    expect(forwarder.upstream.pool.idleConnections).toBe(2);
  });

  it.each([
    ["it was not used for too long", OK, { idleTimeoutMs: 20 }],
    [
      "the upstream has said that it will close it",
      OK.replace("\r\n\r\n", "\r\nKeep-Alive: timeout=2, max=9\r\n\r\n"),
      {},
    ],
  ])("closes an idle connection when %s", async (_name, answer, options) => {
    const { node, forwarder } = await start(answer, options);
    await ask(forwarder);
    expect(forwarder.upstream.pool.idleConnections).toBe(1);
    await until(() => node.sockets[0]?.destroyed === true, "closed");
    expect(forwarder.upstream.pool.idleConnections).toBe(0);
  });

  it("gives no idle connection to anybody once it is closed, and none to be kept", async () => {
    const held: Socket[] = [];
    const { node, forwarder } = await start((socket) => held.push(socket));
    const asked = ask(forwarder);
    await until(() => held.length === 1, "asked");
    forwarder.upstream.close();
    held[0]?.write(OK);
    expect(await asked).toMatch(/x$/);
    await until(() => node.sockets[0]?.destroyed === true, "closed behind its exchange");
    expect(forwarder.upstream.pool.idleConnections).toBe(0);
  });

  it.each([
    ["says that it closes", OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")],
    ["sends more than was asked for", `${OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`],
    ["speaks HTTP/1.0", OK.replace("1.1", "1.0")],
    ["answers the upload before it was sent", "HTTP/1.1 413 X\r\nContent-Length: 1\r\n\r\nx"],
  ])("uses a connection once when the upstream %s", async (name, answer) => {
    const { node, forwarder } = await start(answer);
    const upload = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n";
    const { text } = await exchange(forwarder.port, name.includes("upload") ? upload : GET);
    expect(text).toMatch(/\r\n\r\nx$/);
    await until(() => node.sockets[0]?.destroyed === true, "closed");
    expect(forwarder.upstream.pool.idleConnections).toBe(0);
  });

  it("closes an idle connection on which something comes that nobody asked for", async () => {
    const { node, forwarder } = await start(OK);
    await ask(forwarder);
    node.sockets[0]?.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    await until(() => node.sockets[0]?.destroyed === true, "closed");
    expect(await ask(forwarder)).toMatch(/\r\n\r\nx$/);
    expect(node.sockets).toHaveLength(2);
  });

  it("repeats a GET on a new connection when the idle one was stale, whatever else is idle", async () => {
    const held: Socket[] = [];
    let isStale = false;
    const { node, forwarder } = await start((socket, count) => {
      if (count <= 3) held.push(socket);
      else if (isStale && held.includes(socket)) socket.destroy();
      else socket.write(OK);
    });
    const asked = [ask(forwarder), ask(forwarder), ask(forwarder)];
    await until(() => held.length === 3, "three requests at once");
    for (const socket of held) socket.write(OK);
    await Promise.all(asked);
    isStale = true;
    expect(await ask(forwarder)).toMatch(/^HTTP\/1.1 200 OK/);
    expect(node.sockets).toHaveLength(4);
  });
});
