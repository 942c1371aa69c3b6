import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createFakeNode, type FakeNode } from "../../../../packages/lab/src/fake-node/fake-node.ts";
import { createDemoPodServers } from "../../../../packages/lab/src/fake-node/run-fake-node.ts";
import { SeparateForwards } from "../../../../src/sessions/carriers/forwards/separate-forwards.ts";
import {
  type GatewayHarness,
  type HarnessOptions,
  startGatewayHarness,
} from "../../../support/gateway-harness.ts";
import { SettableClock } from "../../../support/session-ends.ts";
import { untilStill } from "../../../support/still.ts";
import { TunnelClient, type TunnelClientOptions, type TunnelStream } from "../../../support/tunnel-client.ts";

// The bounds under test.
const MAX_FORWARD_CONNECTIONS = 64;
const MAX_UNUSED_FORWARD_CONNECTIONS = 8;
const FORWARD_STALL_MS = 30_000;
const MAX_FORWARD_BUFFER_BYTES = 256 * 1024;

const KIB = 1024;
/** More than the kernel takes on both connections. */
const FLOOD_BYTES = 64 * KIB * KIB;
const [ECHO_PORT, DEAF_PORT, CLOSED_PORT, RESETTING_PORT] = [7, 9, 11, 13];

describe.each(["node-spdy", "node-ws"])("separate connections of a port-forward, on %s", (name) => {
  let servers: Awaited<ReturnType<typeof createDemoPodServers>>;
  const listeners: Server[] = [];
  const sockets: Socket[] = [];
  let node: FakeNode;
  let harness: GatewayHarness | undefined;
  const clients: TunnelClient[] = [];

  const listening = async (onConnection: (socket: Socket) => void): Promise<number> => {
    const server = createServer({ pauseOnConnect: true }, (socket) => {
      socket.on("error", () => {});
      sockets.push(socket);
      onConnection(socket);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    listeners.push(server);
    return (server.address() as AddressInfo).port;
  };

  beforeAll(async () => {
    servers = await createDemoPodServers("web");
    const closed = await listening(() => {});
    listeners.pop()?.close();
    const ports = new Map([
      ...servers.ports,
      [DEAF_PORT, await listening(() => {})],
      [CLOSED_PORT, closed],
      [RESETTING_PORT, await listening((socket) => socket.resetAndDestroy())],
    ]);
    node = await createFakeNode({
      name,
      declaresWebSockets: name === "node-ws",
      pods: [{ namespace: "default", name: "web", uid: "u1", containers: [{ name: "main" }], ports }],
      limits: { maxForwardBufferBytes: 64 * KIB, streamStallTimeoutMs: 600_000 },
    });
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.socket.terminate();
    await harness?.close();
    // A node that has stopped reading hears of an end only so.
    for (const socket of sockets.splice(0)) socket.destroy();
    await expect.poll(() => node.sessionCount).toBe(0);
  });
  afterAll(async () => {
    await node.close();
    await servers.close();
    for (const server of listeners) server.close();
  });

  async function start(
    options: Partial<HarnessOptions> = {},
    client: TunnelClientOptions = {},
  ): Promise<TunnelClient> {
    harness = await startGatewayHarness({
      kubeletPort: node.port,
      declaredFeatures: node.declaredFeatures,
      separateForwards: SeparateForwards,
      ...options,
    });
    const opened = await TunnelClient.open(harness.authority, { speaksSpdy: true, ...client });
    clients.push(opened);
    return opened;
  }

  function open(client: TunnelClient, requestId: number, port: number) {
    const error = client.openStream("error", requestId, port);
    error.stream.finish();
    return { error, data: client.openStream("data", requestId, port) };
  }

  function send({ stream }: TunnelStream, bytes: number): void {
    for (let sent = 0; sent < bytes; sent += 32 * KIB) stream.write(Buffer.alloc(32 * KIB));
  }

  async function expectEcho(client: TunnelClient, requestId: number): Promise<void> {
    const { data, error } = open(client, requestId, ECHO_PORT);
    const sent = `is anybody there, says ${requestId}`;
    data.stream.write(Buffer.from(sent));
    data.stream.finish();
    expect(await data.ended).toBe("finished");
    expect(data.text().toString()).toBe(sent);
    await error.ended;
    expect(error.text().toString()).toBe("");
  }

  async function leave(client: TunnelClient): Promise<void> {
    client.socket.close(1000);
    expect((await client.closed).code).toBe(1000);
  }

  it("are one for each forwarded connection, and one in reserve, used again, and end with the client", async () => {
    const client = await start();
    const opened = [0, 1, 2].map((requestId) => open(client, requestId, ECHO_PORT));
    for (const { data } of opened) data.stream.write(Buffer.from("here"));
    for (const { data } of opened) await expect.poll(() => data.text().toString()).toBe("here");
    await expect.poll(() => node.sessionCount).toBe(4);
    for (let requestId = 3; requestId < 20; requestId++) await expectEcho(client, requestId);
    // The one that carried the echoes, and its reserve.
    await expect.poll(() => node.sessionCount).toBe(5);
    await leave(client);
  });

  it("are kept for the next ones, so many at most", async () => {
    const client = await start();
    const opened = Array.from({ length: MAX_UNUSED_FORWARD_CONNECTIONS + 5 }, (_, id) =>
      open(client, id, ECHO_PORT),
    );
    for (const { data } of opened) data.stream.write(Buffer.from("here"));
    for (const { data } of opened) await expect.poll(() => data.text().toString()).toBe("here");
    for (const { data } of opened) data.stream.finish();
    for (const { data } of opened) await data.ended;
    await expect.poll(() => node.sessionCount).toBe(MAX_UNUSED_FORWARD_CONNECTIONS);
    await leave(client);
  });

  it("leave the others alone while one does not read", async () => {
    const client = await start();
    const stuck = open(client, 0, DEAF_PORT);
    send(stuck.data, 512 * KIB);
    for (let requestId = 1; requestId < 20; requestId++) await expectEcho(client, requestId);
    // Its connection to the node is full, and is not used again.
    const { sessionCount } = node;
    stuck.data.stream.reset();
    await expect.poll(() => node.sessionCount).toBe(sessionCount - 1);
    await leave(client);
  });

  it("are at most so many, and then shared", async () => {
    const client = await start();
    const opened = Array.from({ length: MAX_FORWARD_CONNECTIONS + 10 }, (_, id) =>
      open(client, id, ECHO_PORT),
    );
    for (const { data } of opened) data.stream.write(Buffer.from("here"));
    for (const { data } of opened) await expect.poll(() => data.text().toString()).toBe("here");
    expect(node.sessionCount).toBe(MAX_FORWARD_CONNECTIONS);
    await leave(client);
  });

  it("stop the client once one takes no more, which is then reset alone", async () => {
    const clock = new SettableClock();
    const client = await start({ clock });
    const other = open(client, 1, ECHO_PORT);
    const stuck = open(client, 0, DEAF_PORT);
    send(stuck.data, FLOOD_BYTES);
    other.data.stream.write(Buffer.from("still here"));
    const taken = () => FLOOD_BYTES - client.socket.bufferedAmount;
    await untilStill("the client", taken, MAX_FORWARD_BUFFER_BYTES);
    expect(client.socket.bufferedAmount).toBeGreaterThan(MAX_FORWARD_BUFFER_BYTES);
    expect(other.data.text().toString()).toBe("");
    const later = () => {
      clock.aheadMs += FORWARD_STALL_MS;
      return other.data.text().toString();
    };
    await expect.poll(later, { interval: 200 }).toBe("still here");
    expect(await stuck.data.ended).toMatchObject({ type: "reset" });
    await expectEcho(client, 3);
    await leave(client);
  });

  it.each([
    CLOSED_PORT,
    RESETTING_PORT,
  ])("end alone at port %i, without a text that ends kubectl", async (port) => {
    const client = await start();
    const { data, error } = open(client, 0, port);
    await Promise.all([data.ended, error.ended]);
    expect(error.text().toString()).toBe("");
    await expectEcho(client, 1);
    await leave(client);
  });

  it("tell a client that goes on after it why one failed", async () => {
    const client = await start({}, { headers: { "User-Agent": "sluice" } });
    const { error } = open(client, 0, CLOSED_PORT);
    await error.ended;
    expect(error.text().toString()).toContain("connection refused");
    await expectEcho(client, 1);
    await leave(client);
  });

  it("are refused by policy as on a shared one", async () => {
    const rules = [{ name: "no-discard", match: { ports: [DEAF_PORT] }, action: "deny" }];
    const started = start({ policy: { rules } });
    if (name === "node-ws") {
      await expect(started).rejects.toThrow("cannot be seen in a WebSocket that passes through");
      return;
    }
    const client = await started;
    await expectEcho(client, 0);
    open(client, 1, DEAF_PORT);
    expect((await client.closed).code).toBe(1008);
  });
});
