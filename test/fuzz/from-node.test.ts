import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SessionClock } from "../../packages/client/src/net/session-clock.ts";
import { type GatewayHarness, startGatewayHarness } from "../support/gateway-harness.ts";
import { V5Client, type V5Result } from "../support/v5-client.ts";
import { type Conversation, damaged, kubeletExec, NODE_STATUS, spdyExec } from "./conversations.ts";

/** A node that says what it is told to and ends, whatever it is asked. */
describe("anything from a node", () => {
  const saying: Conversation[] = [];
  const sockets = new Set<Socket>();
  let node: Server;
  let harness: GatewayHarness;

  beforeAll(async () => {
    node = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => sockets.delete(socket));
      socket.on("end", () => socket.end());
      socket.once("data", () => {
        const said = saying.shift();
        if (said === undefined) throw new Error("nothing is left to say");
        socket.write(said.head);
        socket.end(said.body);
      });
    });
    node.listen(0, "127.0.0.1");
    await once(node, "listening");
    harness = await startGatewayHarness({
      kubeletPort: (node.address() as AddressInfo).port,
      timeouts: { lingerIdleMs: 300 },
      clock: new SessionClock(20),
    });
  });
  afterAll(async () => {
    await harness.close();
    for (const socket of sockets) socket.destroy();
    node.close();
    await once(node, "close");
  });

  function translated(): Promise<V5Result> {
    const client = new V5Client(harness.authority, "command=x&stdin=true&stdout=true");
    client.socket.on("error", () => {});
    return client.done;
  }

  function passedThrough(): Promise<string> {
    const [host, port] = harness.authority.split(":");
    const socket = connect(Number(port), host);
    const { head, body } = spdyExec();
    const received: Buffer[] = [];
    socket.on("data", (chunk) => {
      if (received.push(chunk) === 1) socket.write(body);
    });
    socket.on("end", () => socket.end());
    socket.on("error", () => {});
    socket.write(head);
    return new Promise((resolve) =>
      socket.once("close", () => resolve(Buffer.concat(received).toString("latin1"))),
    );
  }

  async function expectAllGone(): Promise<void> {
    await expect.poll(() => harness.context.sessions.size, { timeout: 5_000 }).toBe(0);
    await expect.poll(() => sockets.size, { timeout: 5_000 }).toBe(0);
    expect(harness.logLines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  }

  it("to a translated client ends in one status, and in success only when the node said so", async () => {
    await fc.assert(
      fc.asyncProperty(damaged([kubeletExec()]), async (said) => {
        saying.push(said);
        const { status, closeCode } = await translated();
        if (closeCode !== 1000) return;
        const { status: word } = JSON.parse(status);
        expect(["Success", "Failure"]).toContain(word);
        if (word === "Success") expect(said.body.toString("latin1")).toContain('"Success"');
      }),
      { numRuns: 200 },
    );
    await expectAllGone();
  });

  it("to a client that is passed through leaves no session, no connection, no fault", async () => {
    await fc.assert(
      fc.asyncProperty(damaged([kubeletExec()]), async (said) => {
        saying.push(said);
        await passedThrough();
      }),
      { numRuns: 150 },
    );
    await expectAllGone();
  });

  it("the undamaged conversation is a success on both ways", async () => {
    saying.push(kubeletExec());
    expect((await translated()).status).toBe(NODE_STATUS);
    saying.push(kubeletExec());
    expect(await passedThrough()).toContain(NODE_STATUS);
    await expectAllGone();
  });
});
