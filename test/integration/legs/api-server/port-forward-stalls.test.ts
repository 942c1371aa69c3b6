import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFakeNode, type FakeNode } from "../../../../packages/lab/src/fake-node/fake-node.ts";
import { createDemoPodServers } from "../../../../packages/lab/src/fake-node/run-fake-node.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { TunnelClient, type TunnelStream } from "../../../support/tunnel-client.ts";

const MIB = 1024 * 1024;
const ECHO_PORT = 7;
const DEAF_PORT = 9;
/** A node's buffer for one stream; docs/limits.md names the default, which is the same. */
const STREAM_BUFFER_BYTES = MIB;
const STALL_TIMEOUT_MS = 500;
/** More than the stream's buffer and the kernel's take together. */
const FLOOD_BYTES = 64 * MIB;

/** All streams of a port-forward share one connection, and SPDY as Kubernetes speaks it has no flow control. */
describe.each(["node-spdy", "node-ws"])("a forwarded stream whose target does not read, on %s", (name) => {
  let servers: Awaited<ReturnType<typeof createDemoPodServers>>;
  let deaf: Server;
  let node: FakeNode;
  let harness: GatewayHarness;
  const deafSockets: Socket[] = [];

  beforeAll(async () => {
    servers = await createDemoPodServers("web");
    deaf = createServer({ pauseOnConnect: true }, (socket) => {
      socket.on("error", () => {});
      deafSockets.push(socket);
    });
    deaf.listen(0, "127.0.0.1");
    await once(deaf, "listening");
    const ports = new Map([...servers.ports, [DEAF_PORT, (deaf.address() as AddressInfo).port]]);
    node = await createFakeNode({
      name,
      declaresWebSockets: name === "node-ws",
      pods: [{ namespace: "default", name: "web", uid: "u1", containers: [{ name: "main" }], ports }],
      limits: { maxForwardBufferBytes: STREAM_BUFFER_BYTES, streamStallTimeoutMs: STALL_TIMEOUT_MS },
    });
    harness = await startGatewayHarness({ kubeletPort: node.port, declaredFeatures: node.declaredFeatures });
  });
  afterAll(async () => {
    for (const socket of deafSockets) socket.destroy();
    await harness.close();
    await node.close();
    await servers.close();
    deaf.close();
  });

  function open(client: TunnelClient, requestId: number, port: number): TunnelStream {
    client.openStream("error", requestId, port).stream.finish();
    return client.openStream("data", requestId, port);
  }

  function send({ stream }: TunnelStream, bytes: number): void {
    for (let sent = 0; sent < bytes; sent += 32 * 1024) stream.write(Buffer.alloc(32 * 1024));
  }

  async function expectEcho(client: TunnelClient, requestId: number): Promise<void> {
    const echo = open(client, requestId, ECHO_PORT);
    echo.stream.write(Buffer.from("are you there"));
    echo.stream.finish();
    expect(await echo.ended).toBe("finished");
    expect(echo.text().toString()).toBe("are you there");
  }

  it("does not stop the others while the node's buffer for it lasts", async () => {
    const client = await TunnelClient.open(harness.authority, { speaksSpdy: true });
    const before = open(client, 0, ECHO_PORT);
    const stuck = open(client, 1, DEAF_PORT);
    send(stuck, STREAM_BUFFER_BYTES);
    for (let requestId = 2; requestId < 12; requestId++) await expectEcho(client, requestId);
    before.stream.write(Buffer.from("still open"));
    before.stream.finish();
    expect(await before.ended).toBe("finished");
    expect(before.text().toString()).toBe("still open");
    client.socket.terminate();
    await expect.poll(() => node.sessionCount).toBe(0);
  });

  it("stops them no longer than the node's time-out for it, and is reset alone", async () => {
    const client = await TunnelClient.open(harness.authority, { speaksSpdy: true });
    const stuck = open(client, 0, DEAF_PORT);
    send(stuck, FLOOD_BYTES);
    await Promise.all([expectEcho(client, 1), expectEcho(client, 2)]);
    expect(await stuck.ended).toMatchObject({ type: "reset" });
    await expectEcho(client, 3);
    client.socket.close(1000);
    expect((await client.closed).code).toBe(1000);
    await expect.poll(() => node.sessionCount).toBe(0);
  });
});
