import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type DialOptions, dial, type UpstreamEndpoint } from "../../../packages/client/src/net/dial.ts";
import { SpareConnections } from "../../../src/net/spare-connections.ts";
import { listenRaw, openSocketCount, type RawUpstream, until } from "../../support/http/loopback.ts";

const servers: RawUpstream[] = [];
const taken: Socket[] = [];
afterEach(async () => {
  for (const socket of taken.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) await server.close();
  await until(() => openSocketCount() === 0, "all sockets are closed");
});

async function node(): Promise<{ server: RawUpstream; endpoint: UpstreamEndpoint }> {
  const server = await listenRaw((socket) => socket.on("data", (chunk) => socket.write(chunk)));
  servers.push(server);
  return { server, endpoint: { host: "127.0.0.1", port: server.port } };
}

const hasAccepted = (server: RawUpstream, count: number) =>
  until(() => server.sockets.length === count, `${count} connections`);

async function connect(spares: SpareConnections, endpoint: UpstreamEndpoint): Promise<Socket> {
  const socket = await spares.connect(endpoint, { reusesReads: true });
  taken.push(socket);
  return socket;
}

describe("a connection in reserve", () => {
  it("is the next one to the same endpoint, and is replaced", async () => {
    const { server, endpoint } = await node();
    const spares = new SpareConnections({ max: 10, dial });
    await connect(spares, endpoint);
    await hasAccepted(server, 2);
    const second = await connect(spares, { ...endpoint });
    expect(second.localPort).toBe(server.sockets[1]?.remotePort);
    second.resume().write("hello");
    const echoed = await new Promise((resolve) => second.once("data", resolve));
    expect(String(echoed)).toBe("hello");
    await hasAccepted(server, 3);
    expect(spares.size).toBe(1);
  });

  it("is not that of an endpoint of another name", async () => {
    const { server, endpoint } = await node();
    const spares = new SpareConnections({ max: 10, dial });
    await connect(spares, { ...endpoint, commonName: "system:node:one" });
    await hasAccepted(server, 2);
    const other = await connect(spares, { ...endpoint, commonName: "system:node:other" });
    expect(other.localPort).not.toBe(server.sockets[1]?.remotePort);
  });

  it("is one of so many at most, those that are being dialled included", async () => {
    const [one, other] = [await node(), await node()];
    const spares = new SpareConnections({ max: 1, dial });
    await Promise.all([connect(spares, one.endpoint), connect(spares, one.endpoint)]);
    await connect(spares, other.endpoint);
    await hasAccepted(one.server, 3);
    expect([other.server.sockets.length, spares.size]).toEqual([1, 1]);
  });

  it("is closed when no session wants it, and makes room", async () => {
    const { server, endpoint } = await node();
    const spares = new SpareConnections({ max: 1, dial, spareMs: 50 });
    await connect(spares, endpoint);
    await hasAccepted(server, 2);
    await until(() => server.sockets[1]?.readableEnded === true, "the spare is closed");
    expect(spares.size).toBe(0);
  });

  it.each([
    ["closes", (socket: Socket) => socket.end()],
    ["resets", (socket: Socket) => socket.resetAndDestroy()],
    ["writes to", (socket: Socket) => socket.write("HTTP/1.1 408 Request Timeout\r\n\r\n")],
  ])("is dropped where the node %s it", async (_, act) => {
    const { server, endpoint } = await node();
    const spares = new SpareConnections({ max: 1, dial });
    await connect(spares, endpoint);
    await hasAccepted(server, 2);
    act(server.sockets[1] as Socket);
    await until(() => spares.size === 0, "the spare is dropped");
    await connect(spares, endpoint);
    expect(server.sockets.length).toBeGreaterThanOrEqual(3);
  });

  it("that cannot be had fails no session", async () => {
    const { endpoint } = await node();
    const asked: DialOptions[] = [];
    const dialOnce = (to: UpstreamEndpoint, options: DialOptions): Promise<Socket> => {
      asked.push(options);
      return asked.length === 1 ? dial(to, options) : Promise.reject(new Error("refused"));
    };
    const spares = new SpareConnections({ max: 1, dial: dialOnce });
    await connect(spares, endpoint);
    await until(() => asked.length === 2 && spares.size === 0, "the spare has failed");
    await expect(spares.connect(endpoint, {})).rejects.toThrow("refused");
  });
});
