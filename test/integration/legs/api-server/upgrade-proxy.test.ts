import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import {
  afterHead,
  listenRaw,
  openClient,
  type RawUpstream,
  readToEnd,
} from "../../../support/http/loopback.ts";
import { V5Client } from "../../../support/v5-client.ts";

const EXEC = "/api/v1/namespaces/default/pods/web/exec?stdout=true&command=x";
const SPDY = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n";
const SPDY_REQUEST = `POST ${EXEC} HTTP/1.1\r\nHost: gateway\r\n${SPDY}Content-Length: 0\r\n\r\n`;
/** Nobody looks into a port-forward that passes through, so its bytes may be anything. */
const PORT_FORWARD_REQUEST = SPDY_REQUEST.replace("/exec?", "/portforward?");
const SWITCHED = `HTTP/1.1 101 Switching Protocols\r\n${SPDY}\r\n`;
/** With lines of the node's own. */
const SWITCHED_AND_MORE = SWITCHED.replace(/\r\n\r\n$/, "\r\nX-Node: of the node\r\nSet-Cookie: a=b\r\n\r\n");

let harness: GatewayHarness | undefined;
let node: RawUpstream | undefined;

afterEach(async () => {
  await harness?.close();
  await node?.close();
  harness = node = undefined;
});

/** A node that does this with each connection once it has the request. Returns the gateway's port. */
async function start(answer: (socket: Socket) => void): Promise<number> {
  node = await listenRaw((socket) => afterHead(socket, () => answer(socket)));
  harness = await startGatewayHarness({ kubeletPort: node.port });
  return Number(harness.authority.split(":")[1]);
}

/** Both ends of the node's connections are closed, and no place is taken. */
async function expectNothingLeft(): Promise<void> {
  await expect
    .poll(() => node?.sockets.every((socket) => socket.readableEnded || socket.destroyed))
    .toBe(true);
  await expect.poll(() => harness?.context.sessions.size).toBe(0);
}

describe("a node that answers an upgrade with something else", () => {
  for (const code of [301, 302, 303, 307, 308]) {
    it(`TestStreamTranslator_BlockRedirects: ${code} is an error, and nobody is sent elsewhere`, async () => {
      const port = await start((socket) =>
        socket.write(`HTTP/1.1 ${code} Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n`),
      );
      const client = new V5Client(`127.0.0.1:${port}`, "stdout=true");
      await expect(client.opened).rejects.toThrow("Unexpected server response: 500");
      expect(await harness?.metric('apiserver_stream_translator_requests_total{code="500"}')).toEqual([
        'apiserver_stream_translator_requests_total{code="500"} 1',
      ]);
      await expectNothingLeft();
    });
  }

  for (const code of [200, 204, 300, 302, 304, 307, 102, 199]) {
    it(`TestProxyUpgradeErrorResponse: ${code} for a SPDY client is 500 with a Status, never a pipe`, async () => {
      const port = await start((socket) => {
        socket.write(`HTTP/1.1 ${code} Whatever\r\nLocation: http://127.0.0.1:1/\r\n\r\nraw bytes`);
        // An interim answer that is skipped must be followed by a final one.
        socket.end();
      });
      const socket = await openClient(port);
      socket.write(SPDY_REQUEST);
      const { text } = await readToEnd(socket);
      expect(text).toContain("HTTP/1.1 500 Internal Server Error\r\n");
      expect(text).not.toContain("Location");
      expect(JSON.parse(text.split("\r\n\r\n")[1] ?? "")).toMatchObject({ kind: "Status", code: 500 });
      await expectNothingLeft();
    });
  }

  for (const code of [400, 500]) {
    it(`TestProxyUpgradeErrorResponseTerminates: ${code} is copied, and a pipelined request goes nowhere`, async () => {
      const port = await start((socket) =>
        socket.write(`HTTP/1.1 ${code} Whatever\r\nX-Custom: v\r\nContent-Length: 4\r\n\r\nbody`),
      );
      const socket = await openClient(port);
      socket.write(`${SPDY_REQUEST}GET /api/v1/smuggled HTTP/1.1\r\nHost: gateway\r\n\r\n`);
      const { text } = await readToEnd(socket);
      expect(text).toContain(`HTTP/1.1 ${code} Whatever\r\n`);
      expect(text).toContain("X-Custom: v\r\n");
      expect(text.endsWith("\r\n\r\nbody")).toBe(true);
      expect(node?.received()).not.toContain("smuggled");
      await expectNothingLeft();
    });
  }
});

describe("TestProxyUpgrade", () => {
  it("what follows the 101 arrives byte for byte, with the headers that the protocol needs alone; bytes sent early reach the node behind its 101", async () => {
    const port = await start((socket) => socket.write(`${SWITCHED_AND_MORE}\x00\xff behind`, "latin1"));
    const socket = await openClient(port);
    // In one segment with the request: Kubernetes loses these.
    socket.write(`${PORT_FORWARD_REQUEST}early bytes`);
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    await expect.poll(() => received.endsWith("\x00\xff behind") || received).toBe(true);
    expect(received.split("\r\n\r\n")[0]).toBe(`HTTP/1.1 101 Switching Protocols\r\n${SPDY}`.trimEnd());
    await expect.poll(() => node?.received().endsWith("\r\n\r\nearly bytes")).toBe(true);
    socket.destroy();
    node?.sockets[0]?.destroy();
  });

  it("nothing but the request is sent before the 101, however much the client sends", async () => {
    let answer: (() => void) | undefined;
    const port = await start((socket) => {
      answer = () => socket.write(SWITCHED);
    });
    const socket = await openClient(port);
    const early = Buffer.alloc(1024 * 1024, "e");
    socket.write(PORT_FORWARD_REQUEST);
    socket.write(early);
    await expect.poll(() => answer !== undefined).toBe(true);
    expect(node?.received().endsWith("\r\n\r\n")).toBe(true);
    answer?.();
    await expect.poll(() => node?.received().split("\r\n\r\n")[1]?.length).toBe(early.length);
    socket.destroy();
    node?.sockets[0]?.destroy();
  });

  it("TestConnectionCloseIsImmediateThroughAProxy: the node's end is the client's at once", async () => {
    const port = await start((socket) => socket.end(SWITCHED));
    const socket = await openClient(port);
    socket.write(PORT_FORWARD_REQUEST);
    const { text, isClean } = await readToEnd(socket);
    // GOAWAY, which the node owed.
    expect([text.slice(0, SWITCHED.length), text.length - SWITCHED.length, isClean]).toEqual([
      SWITCHED,
      16,
      true,
    ]);
    await expectNothingLeft();
  });
});

describe("a client that leaves while its node is asked", () => {
  for (const [name, leave] of [
    ["by FIN", (socket: Socket) => socket.end()],
    ["by RST", (socket: Socket) => socket.resetAndDestroy()],
  ] as const) {
    it(`${name}: the node's connection is dropped, and its place is free`, async () => {
      const port = await start(() => {});
      const socket = await openClient(port);
      socket.write(SPDY_REQUEST);
      await expect.poll(() => node?.sockets.length).toBe(1);
      await expect.poll(() => node?.received().endsWith("\r\n\r\n")).toBe(true);
      leave(socket);
      await expectNothingLeft();
    });
  }

  it("the 101 that comes right after it left lays no pipe", async () => {
    const port = await start((nodeSocket) => {
      socket.resetAndDestroy();
      nodeSocket.write(SWITCHED);
    });
    const socket = await openClient(port);
    socket.write(SPDY_REQUEST);
    await expect.poll(() => node?.sockets.length).toBe(1);
    await expectNothingLeft();
  });
});
