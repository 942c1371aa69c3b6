import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { FakeNode } from "../../../packages/lab/src/fake-node/fake-node.ts";
import { createDemoPodServers } from "../../../packages/lab/src/fake-node/run-fake-node.ts";
import { SpdySession } from "../../../protocols/spdy/index.ts";
import { OPCODE, WebSocketFrameDecoder } from "../../../protocols/websocket/index.ts";
import {
  type ClientStream,
  maskedFrame,
  POD,
  SpdyClient,
  spdyUpgrade,
  startNode,
  textOf,
  webSocketUpgrade,
} from "./upgrade.ts";

let servers: Awaited<ReturnType<typeof createDemoPodServers>>;
let deaf: Server;
let banner: Server;
let resetting: Server;
let node: FakeNode;
const deafSockets: Socket[] = [];
const STALL_MS = 200;
const BUFFER_BYTES = 256 * 1024;
const UNREAD_BYTES = 64 * 1024;
/** What the target with a banner heard. */
let said = "";

beforeAll(async () => {
  servers = await createDemoPodServers("web");
  // Accepts and never reads.
  deaf = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on("error", () => {});
    deafSockets.push(socket);
  });
  deaf.listen(0, "127.0.0.1");
  await once(deaf, "listening");
  banner = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {}).on("data", (part) => (said += part));
    socket.end("banner");
  }).listen(0, "127.0.0.1");
  resetting = createServer((socket) => {
    socket.on("error", () => {}).once("data", () => socket.resetAndDestroy());
  }).listen(0, "127.0.0.1");
  await Promise.all([once(banner, "listening"), once(resetting, "listening")]);
  const portOf = (server: Server) => (server.address() as AddressInfo).port;
  const ports = new Map([...servers.ports, [5, portOf(banner)], [6, portOf(resetting)], [9, portOf(deaf)]]);
  node = await startNode({
    pods: [{ ...POD, ports }],
    limits: {
      streamStallTimeoutMs: STALL_MS,
      maxForwardBufferBytes: BUFFER_BYTES,
      streamCreationTimeoutMs: 300,
      maxUnreadForwardBytes: UNREAD_BYTES,
    },
  });
});
afterAll(async () => {
  for (const socket of deafSockets) socket.destroy();
  await node.close();
  await servers.close();
  for (const server of [deaf, banner, resetting]) server.close();
});

let nextRequestId = 0;

interface Forwarded {
  readonly error: ClientStream;
  readonly data: ClientStream;
}

function forward(client: SpdyClient, port: number): Forwarded {
  const headers = { port: String(port), requestid: String(nextRequestId++) };
  const error = client.open({ streamtype: "error", ...headers });
  error.stream.finish();
  return { error, data: client.open({ streamtype: "data", ...headers }) };
}

async function openClient(): Promise<SpdyClient> {
  const { socket, head } = await spdyUpgrade(node, "/portForward/default/web", "portforward.k8s.io");
  return new SpdyClient(socket, head);
}

/** A round trip of another client. */
async function echoElsewhere(): Promise<void> {
  const client = await openClient();
  const { data } = forward(client, 7);
  data.stream.write(Buffer.from("elsewhere"));
  data.stream.finish();
  await data.ended;
  expect(textOf(data)).toBe("elsewhere");
  client.socket.destroy();
}

const GET = Buffer.from("GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n");

describe("port-forward over SPDY", () => {
  it("answers 50 requests on one connection, all at once", async () => {
    const client = await openClient();
    const requests = Array.from({ length: 50 }, () => forward(client, 80));
    for (const { data } of requests) {
      data.stream.write(GET);
      data.stream.finish();
    }
    await Promise.all(requests.flatMap(({ data, error }) => [data.ended, error.ended]));
    for (const { data, error } of requests) {
      expect(textOf(data)).toContain("Hello from pod web");
      expect([data.end, error.end, textOf(error)]).toEqual(["finished", "finished", ""]);
    }
    client.socket.destroy();
  });

  it("half-closes: the echo ends after the client's last byte", async () => {
    const client = await openClient();
    const { data, error } = forward(client, 7);
    const bytes = Buffer.alloc(1024 * 1024, "echo");
    data.stream.write(bytes);
    data.stream.finish();
    await Promise.all([data.ended, error.ended]);
    expect(Buffer.concat(data.parts).equals(bytes)).toBe(true);
    client.socket.destroy();
  });

  it("ends as containerd does when the target ends first: the client's side 1 s later, whatever it still sends", async () => {
    const client = await openClient();
    const polite = forward(client, 5);
    const deafened = forward(client, 5);
    await Promise.all(
      [polite, deafened].map(async ({ data }) => {
        while (textOf(data) !== "banner") await once(client.socket, "data");
      }),
    );
    // The data does not end with the target, but with the connection.
    expect([polite.data.end, polite.error.end]).toEqual(["open", "open"]);
    polite.data.stream.write(Buffer.from("within the second"));
    polite.data.stream.finish();
    await Promise.all([polite.data.ended, polite.error.ended, deafened.data.ended, deafened.error.ended]);
    expect([polite, deafened].map(({ data, error }) => [data.end, error.end, textOf(error)])).toEqual(
      [1, 2].map(() => ["finished", "finished", ""]),
    );
    expect(said).toContain("within the second");

    const echo = forward(client, 7);
    echo.data.stream.write(Buffer.from("before"));
    while (textOf(echo.data) !== "before") await once(client.socket, "data");
    // What is sent to a connection that is over is kept, up to a bound, and then stops them all for good.
    deafened.data.stream.write(Buffer.alloc(UNREAD_BYTES + 1));
    // Until the first bytes of it have stopped the reading, a reset could come with them.
    await echoElsewhere();
    deafened.data.stream.reset();
    echo.data.stream.write(Buffer.from("after"));
    for (let round = 0; round < 5; round += 1) await echoElsewhere();
    expect(textOf(echo.data)).toBe("before");
    client.socket.destroy();
  });

  it("a client that resets its stream in time does not stop the others", async () => {
    const client = await openClient();
    const { data } = forward(client, 5);
    await data.ended;
    data.stream.write(Buffer.alloc(UNREAD_BYTES - 1));
    data.stream.reset();
    const echo = forward(client, 7);
    echo.data.stream.write(Buffer.from("goes on"));
    echo.data.stream.finish();
    await echo.data.ended;
    expect(textOf(echo.data)).toBe("goes on");
    client.socket.destroy();
  });

  it("says what containerd says of a target that resets what it had accepted", async () => {
    const client = await openClient();
    const { data, error } = forward(client, 6);
    data.stream.write(Buffer.from("x"));
    await Promise.all([data.ended, error.ended]);
    expect(textOf(error)).toMatch(
      /^error forwarding port 6 to pod 5a1f, uid : failed to execute portforward in network namespace "5a1f": (read|write) tcp4 127\.0\.0\.1:\d+->127\.0\.0\.1:6: \1: (connection reset by peer|broken pipe)$/,
    );
    expect(data.end).toBe("reset");
    client.socket.destroy();
  });

  it("names a port that nobody listens on, and goes on with the others", async () => {
    const client = await openClient();
    const echo = forward(client, 7);
    const refused = forward(client, 81);
    await Promise.all([refused.error.ended, refused.data.ended]);
    expect(textOf(refused.error)).toBe(
      'error forwarding port 81 to pod 5a1f, uid : failed to connect to localhost:81 inside namespace "5a1f", IPv4: dial tcp4 127.0.0.1:81: connect: connection refused',
    );
    expect(refused.data.end).toBe("reset");
    echo.data.stream.write(Buffer.from("still here"));
    echo.data.stream.finish();
    await echo.data.ended;
    expect(textOf(echo.data)).toBe("still here");
    client.socket.destroy();
  });

  it("resets a stream whose target does not read, alone", async () => {
    const client = await openClient();
    const stuck = forward(client, 9);
    const echo = forward(client, 7);
    // More than the buffers of the kernel and of the node: the connection is not read until the stream is given up.
    for (let sent = 0; sent < 64; sent++) stuck.data.stream.write(Buffer.alloc(256 * 1024));
    echo.data.stream.write(Buffer.from("after"));
    echo.data.stream.finish();
    await Promise.all([stuck.data.ended, echo.data.ended]);
    expect([stuck.data.end, textOf(stuck.error), textOf(echo.data)]).toEqual(["reset", "", "after"]);
    client.socket.destroy();
  });

  it("refuses bad headers by RST and a duplicate by text", async () => {
    const client = await openClient();
    const bad = client.open({ streamtype: "data", port: "0", requestid: "900" });
    await bad.ended;
    expect(bad.end).toBe("reset");
    const first = client.open({ streamtype: "error", port: "80", requestid: "901" });
    client.open({ streamtype: "error", port: "80", requestid: "901" });
    while (textOf(first) === "") await once(client.socket, "data");
    expect(textOf(first)).toBe("error processing stream for request 901: error stream already assigned");
    client.socket.destroy();
  });

  it("tells a stream whose partner never comes", async () => {
    const client = await openClient();
    const lonely = client.open({ streamtype: "error", port: "80", requestid: "902" });
    await lonely.ended;
    expect(textOf(lonely)).toMatch(/^\(conn=.*, request=902\) timed out waiting for streams$/);
    client.socket.destroy();
  });
});

describe("port-forward over WebSocket", () => {
  it("carries SPDY in the tunnel and closes it with 1000", async () => {
    const subprotocol = "SPDY/3.1+portforward.k8s.io";
    const { socket, head, response } = await webSocketUpgrade(node, "/portForward/default/web", subprotocol);
    expect(response.headers["sec-websocket-protocol"]).toBe(subprotocol);
    const closeCodes: number[] = [];
    const session = new SpdySession("client", {
      send: (bytes) => void socket.write(maskedFrame(OPCODE.BINARY, bytes)),
      onStream: () => 3,
    });
    const decoder = new WebSocketFrameDecoder("client", {
      onMessage: (part) => session.receive(part),
      onPing: () => {},
      onPong: () => {},
      onClose: (code) => closeCodes.push(code),
    });
    socket.on("data", (chunk) => decoder.push(chunk));
    decoder.push(head);

    const headers = { port: "80", requestid: "0" };
    const ignore = { onData() {}, onEnd() {} };
    session.openStream(Object.entries({ streamtype: "error", ...headers }), ignore).finish();
    const parts: Buffer[] = [];
    await new Promise<void>((resolve) => {
      const stream = session.openStream(Object.entries({ streamtype: "data", ...headers }), {
        onData(part, fin) {
          parts.push(Buffer.from(part));
          if (fin) resolve();
        },
        onEnd: () => resolve(),
      });
      stream.write(GET);
      stream.finish();
    });
    expect(Buffer.concat(parts).toString()).toContain("Hello from pod web");
    session.goAway();
    socket.on("end", () => socket.end());
    await once(socket, "close");
    expect(closeCodes).toEqual([1000]);
  });

  it("ends the tunnel at a text message", async () => {
    const { socket } = await webSocketUpgrade(
      node,
      "/portForward/default/web",
      "SPDY/3.1+portforward.k8s.io",
    );
    socket.on("error", () => {});
    socket.write(maskedFrame(OPCODE.TEXT, Buffer.from("hello")));
    await once(socket.resume(), "close");
  });

  it.each([
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
  ])("serves the legacy form over %s", async (subprotocol) => {
    const { socket, chunks } = openWebSocket("/portForward/default/web?port=80,81", subprotocol);
    const isBase64 = subprotocol.includes("base64");
    await once(socket, "open");
    socket.send(isBase64 ? `0${GET.toString("base64")}` : Buffer.concat([Buffer.from([0]), GET]));
    const [code] = await once(socket, "close");
    expect(code).toBe(1000);
    const channel = (number: number): Buffer => {
      const own = chunks.filter((data) => (data[0] ?? 0) - (isBase64 ? 0x30 : 0) === number);
      return Buffer.concat(
        own.map((data) => (isBase64 ? Buffer.from(data.subarray(1).toString(), "base64") : data.subarray(1))),
      );
    };
    expect([...channel(0).subarray(0, 2)]).toEqual([80, 0]);
    expect(channel(0).toString()).toContain("Hello from pod web");
    expect([...channel(1)]).toEqual([80, 0]);
    expect([...channel(2)]).toEqual([81, 0]);
    expect(channel(3).toString()).toContain("error forwarding port 81 to pod 5a1f");
  });
});

function openWebSocket(path: string, subprotocol: string): { socket: WebSocket; chunks: Buffer[] } {
  const url = `ws://${node.address}:${node.port}${path}`;
  const socket = new WebSocket(url, subprotocol, { perMessageDeflate: false });
  const chunks: Buffer[] = [];
  socket.on("message", (data: Buffer) => chunks.push(data));
  return { socket, chunks };
}
