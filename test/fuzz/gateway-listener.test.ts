import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SessionClock } from "../../packages/client/src/net/session-clock.ts";
import { createFakeNode, type FakeNode } from "../../packages/lab/src/fake-node/fake-node.ts";
import { createDemoPodServers } from "../../packages/lab/src/fake-node/run-fake-node.ts";
import { type GatewayHarness, startGatewayHarness } from "../support/gateway-harness.ts";
import { V5Client } from "../support/v5-client.ts";
import {
  type Conversation,
  damaged,
  spdyExec,
  spdyPortForward,
  tunnelPortForward,
  webSocketExec,
} from "./conversations.ts";

/** A damaged head may never be answered; then the client goes on by itself. */
const ANSWER_WAIT_MS = 200;
const conversations = [webSocketExec(), spdyExec(), spdyPortForward(), tunnelPortForward()];

/**
 * Damaged conversations into the listener, with a fake node behind it, so that what passes through is decoded by
 * somebody, too. An exception or a rejection that nobody handles would fail the whole run.
 */
describe.each(["node-spdy", "node-ws"])("anything into the gateway, before %s", (name) => {
  let node: FakeNode;
  let harness: GatewayHarness;
  let servers: Awaited<ReturnType<typeof createDemoPodServers>>;

  beforeAll(async () => {
    servers = await createDemoPodServers("web");
    const containers = [{ name: "main" }];
    node = await createFakeNode({
      name,
      declaresWebSockets: name === "node-ws",
      pods: [{ namespace: "default", name: "web", uid: "u1", containers, ports: servers.ports }],
      limits: { streamCreationTimeoutMs: 300, lingerIdleMs: 300 },
    });
    harness = await startGatewayHarness({
      kubeletPort: node.port,
      declaredFeatures: node.declaredFeatures,
      timeouts: { lingerIdleMs: 300, streamCreationMs: 1_000 },
      clock: new SessionClock(20),
    });
  });
  afterAll(async () => {
    // Resolves when the last connection is closed.
    await harness.close();
    await node.close();
    await servers.close();
  });

  async function say({ head, body }: Conversation): Promise<void> {
    const [host, port] = harness.authority.split(":");
    const socket: Socket = connect(Number(port), host);
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const answered = once(socket, "data").catch(() => {});
    socket.resume();
    socket.write(head);
    await Promise.race([answered, closed, delay(ANSWER_WAIT_MS)]);
    socket.end(body);
    await closed;
  }

  it("leaves no session, no connection, no fault", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(damaged(conversations), { minLength: 1, maxLength: 20 }), async (batch) => {
        await Promise.all(batch.map(say));
      }),
      { numRuns: 25, endOnFailure: true },
    );
    await expect.poll(() => harness.context.sessions.size, { timeout: 5_000 }).toBe(0);
    await expect.poll(() => node.sessionCount, { timeout: 5_000 }).toBe(0);
    expect(harness.logLines.filter((line) => line.includes('"level":"error"'))).toEqual([]);

    const client = new V5Client(harness.authority, "command=cat&stdin=true&stdout=true");
    await client.opened;
    client.send(0, "still well");
    client.closeStdin();
    expect((await client.done).stdout.toString()).toBe("still well");
  });
});
