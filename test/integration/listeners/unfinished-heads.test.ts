import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { Http2Connections, type Http2Request } from "../../../src/listeners/http2-connections.ts";
import { defaultLimits, defaultTimeouts } from "../../support/default-configuration.ts";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, type FrameClient, openFrameClient, PREFACE } from "../../support/frame-peer.ts";
import { FrontDoor } from "../../support/front-door.ts";
import { startGatewayHarness } from "../../support/gateway-harness.ts";
import { closeServer, listen } from "../../support/http/loopback.ts";
import { frameOf, headerBlockOf } from "../../support/http2-frames.ts";

const HEAD_MS = 600;
const GET = { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "a" };
const GET_BLOCK = headerBlockOf(GET);
const POST_BLOCK = headerBlockOf({ ...GET, ":method": "POST" });
const CONTINUATION = 9;
const UNKNOWN = 0xbe;

/** A server that answers nothing and reads every body. `requests`: those whose heads are whole. */
async function serve(): Promise<{ port: number; requests: Http2Request[] }> {
  const requests: Http2Request[] = [];
  const onRequest = (request: Http2Request): void => {
    requests.push(request);
    request.stream.resume();
  };
  const connections = new Http2Connections(
    defaultLimits,
    { onRequest, onConnect: () => {} },
    { takingMs: defaultTimeouts.streamIdleMs, headMs: HEAD_MS },
  );
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    connections.accept(socket);
  });
  onTestFinished(() => closeServer(server, sockets));
  return { port: await listen(server), requests };
}

/** Sends bytes and answers nothing. `isOver` once the server has ended the connection. */
async function silentClient(port: number, bytes: Buffer): Promise<{ socket: Socket; isOver: () => boolean }> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  socket
    .on("error", () => {})
    .on("end", over)
    .on("close", over)
    .resume();
  await once(socket, "connect");
  socket.write(bytes);
  return { socket, isOver: () => isOver };
}

/** Sends a byte every 10 ms. */
function drip(socket: Pick<Socket, "write">, bytes: Buffer): void {
  let sent = 0;
  const timer = setInterval(() => {
    socket.write(bytes.subarray(sent, sent + 1));
    sent += 1;
  }, 10);
  onTestFinished(() => clearInterval(timer));
}

const STARTED = Buffer.concat([PREFACE, frameOf(FRAME.settings, 0, 0), frameOf(FRAME.settings, FLAG.ack, 0)]);

const HALF_HEADS: readonly (readonly [string, Buffer])[] = [
  ["HEADERS whose CONTINUATION does not come", frameOf(FRAME.headers, 1, 3, GET_BLOCK)],
  [
    "a CONTINUATION that is not the last",
    Buffer.concat([
      frameOf(FRAME.headers, 1, 3, GET_BLOCK),
      frameOf(CONTINUATION, 0, 3, headerBlockOf({ a: "b" })),
    ]),
  ],
  ["a part of HEADERS", frameOf(FRAME.headers, 5, 3, GET_BLOCK).subarray(0, 20)],
];

const HALF_FRAMES: readonly (readonly [string, Buffer])[] = [
  ["nothing", Buffer.alloc(0)],
  ["a part of the preface", PREFACE.subarray(0, 10)],
  ["the preface", PREFACE],
  [
    "a part of its SETTINGS",
    Buffer.concat([PREFACE, frameOf(FRAME.settings, 0, 0, Buffer.alloc(6)).subarray(0, 12)]),
  ],
  ["a part of a frame's header", Buffer.concat([STARTED, Buffer.alloc(5)])],
  ["a part of a PING", Buffer.concat([STARTED, frameOf(FRAME.ping, 0, 0, Buffer.alloc(8)).subarray(0, 13)])],
  [
    "a part of an unknown frame",
    Buffer.concat([STARTED, frameOf(UNKNOWN, 0, 0, Buffer.alloc(1_000)).subarray(0, 500)]),
  ],
];

describe("a connection of HTTP/2 is closed in the time of a head", () => {
  it.each(HALF_HEADS)("when its client stops behind %s", async (_what, part) => {
    const { port } = await serve();
    const { isOver } = await silentClient(port, Buffer.concat([STARTED, part]));
    await eventually("its end", isOver, { timeoutMs: 5 * HEAD_MS });
  });

  it.each(HALF_HEADS)("when its client stops behind %s, beside an open stream", async (_what, part) => {
    const { port, requests } = await serve();
    const post = frameOf(FRAME.headers, FLAG.endHeaders, 1, POST_BLOCK);
    const { isOver, socket } = await silentClient(port, Buffer.concat([STARTED, post]));
    await eventually("the stream", () => requests.length === 1);
    socket.write(part);
    await eventually("its end", isOver, { timeoutMs: 5 * HEAD_MS });
    expect(requests[0]?.stream.destroyed).toBe(true);
  });

  it("when a head comes byte by byte", async () => {
    const { port, requests } = await serve();
    const { isOver, socket } = await silentClient(port, STARTED);
    const bytes = frameOf(FRAME.headers, 5, 1, headerBlockOf({ ...GET, a: "b".repeat(10_000) }));
    drip(socket, bytes);
    await eventually("its end", isOver, { timeoutMs: 5 * HEAD_MS });
    expect(requests).toEqual([]);
  });

  it.each(HALF_FRAMES)("when its client has no stream and stops behind %s", async (_what, bytes) => {
    const { port } = await serve();
    const { isOver } = await silentClient(port, bytes);
    await eventually("its end", isOver, { timeoutMs: 5 * HEAD_MS });
  });
});

/** Frames behind which a client is at a boundary. */
const WHOLE_FRAMES: readonly (readonly [string, Buffer])[] = [
  [
    "whose request was reset",
    Buffer.concat([
      frameOf(FRAME.headers, FLAG.endHeaders, 1, POST_BLOCK),
      frameOf(FRAME.reset, 0, 1, Buffer.of(0, 0, 0, 8)),
    ]),
  ],
  ["whose request was malformed", frameOf(FRAME.headers, 5, 1, headerBlockOf({ ...GET, Upper: "case" }))],
  ["that sent an unknown frame", frameOf(UNKNOWN, 0, 0, Buffer.alloc(100))],
  ["that sent a PING", frameOf(FRAME.ping, 0, 0, Buffer.alloc(8))],
];

/** Ends when a client that was opened now has been let go: longer than a head may take. */
async function headTimePasses(port: number): Promise<void> {
  const { isOver } = await silentClient(port, PREFACE);
  await eventually("the end of a later client", isOver, { timeoutMs: 5 * HEAD_MS });
}

async function openClient(port: number, isSecure = false): Promise<FrameClient> {
  const client = await openFrameClient(port, isSecure);
  await eventually("SETTINGS", () => client.has(FRAME.settings, 0));
  return client;
}

describe("a connection of HTTP/2 stays past the time of a head", () => {
  it.each(WHOLE_FRAMES)("when it is idle, of a client %s", async (_what, bytes) => {
    const { port } = await serve();
    const client = await openClient(port);
    client.socket.write(bytes);
    await headTimePasses(port);
    await headTimePasses(port);
    expect(client.isOver).toBe(false);
  });

  it("when a body comes byte by byte, within a frame", async () => {
    const { port, requests } = await serve();
    const client = await openClient(port);
    client.send(FRAME.headers, FLAG.endHeaders, 1, POST_BLOCK);
    const bytes = frameOf(FRAME.data, 0, 1, Buffer.alloc(10_000));
    drip(client.socket, bytes);
    await headTimePasses(port);
    await headTimePasses(port);
    expect(client.isOver).toBe(false);
    expect(requests[0]?.stream.destroyed).toBe(false);
  });

  it.each([
    ["behind a request", Buffer.alloc(0)],
    ["behind a WINDOW_UPDATE", frameOf(FRAME.windowUpdate, 0, 0, Buffer.of(0, 0, 0, 1))],
    ["within a body", frameOf(FRAME.data, 0, 1, Buffer.alloc(100)).subarray(0, 50)],
  ])("when its process is stopped %s", async (_what, last) => {
    const { port, requests } = await serve();
    const post = frameOf(FRAME.headers, FLAG.endHeaders, 1, POST_BLOCK);
    const { isOver } = await silentClient(port, Buffer.concat([STARTED, post, last]));
    await headTimePasses(port);
    await headTimePasses(port);
    expect(isOver()).toBe(false);
    expect(requests[0]?.stream.destroyed).toBe(false);
  });
});

/** What a client may leave unfinished beside an open stream, for as long as the stream is open. */
const HALF_BESIDE_A_STREAM: readonly (readonly [string, Buffer])[] = [
  ["a frame's header", frameOf(FRAME.ping, 0, 0, Buffer.alloc(8)).subarray(0, 5)],
  ["a PING", frameOf(FRAME.ping, 0, 0, Buffer.alloc(8)).subarray(0, 13)],
  ["an unknown frame", frameOf(UNKNOWN, 0, 0, Buffer.alloc(16_000)).subarray(0, 15_000)],
  ["trailers", frameOf(FRAME.headers, FLAG.endStream, 1, headerBlockOf({ a: "b" }))],
];

describe("within a frame beside an open stream a client", () => {
  it.each(HALF_BESIDE_A_STREAM)("gets its answers all the same, behind a half of %s", async (_what, part) => {
    const { port, requests } = await serve();
    const client = await openClient(port);
    client.send(FRAME.headers, FLAG.endHeaders, 1, POST_BLOCK);
    await eventually("the stream", () => requests.length === 1);
    client.socket.write(part);
    await headTimePasses(port);
    requests[0]?.stream.respond({ ":status": 200 });
    requests[0]?.stream.end("answer");
    await eventually("the answer", () => client.bodyOf(1).toString() === "answer");
    // Without a stream the time of a head counts again.
    requests[0]?.stream.close();
    await eventually("its end", () => client.isOver, { timeoutMs: 5 * HEAD_MS });
  });

  it("holds no more fields of unfinished trailers than a head may have", async () => {
    const { port, requests } = await serve();
    const client = await openClient(port);
    client.send(FRAME.headers, FLAG.endHeaders, 1, POST_BLOCK);
    await eventually("the stream", () => requests.length === 1);
    // One literal of 3,000 bytes goes into the dynamic table; each byte behind it repeats the field.
    const value = Buffer.alloc(3_000, "v");
    const literal = Buffer.concat([Buffer.of(0x40, 1, 0x61, 0x7f, 0xb9, 0x16), value]);
    const repeats = Buffer.alloc(Math.ceil(defaultLimits.maxRequestHeaderBytes / 3_000), 0x80 | 62);
    client.send(FRAME.headers, FLAG.endStream, 1, Buffer.concat([literal, repeats]));
    await eventually(
      "the end of the stream or connection",
      () => client.endsOf(1).length > 0 || client.isOver,
      { timeoutMs: 5 * HEAD_MS },
    );
  });
});

describe("timeouts.handshake bounds a head over HTTP/2", () => {
  const handshakeMs = HEAD_MS;

  async function frontDoor(): Promise<FrontDoor> {
    const door = await FrontDoor.start([], {}, { timeouts: { handshake: `${handshakeMs}ms` } });
    onTestFinished(() => door.stop());
    return door;
  }

  it.each([
    ["at the front door", false, async () => (await frontDoor()).httpPort],
    ["at the front door, over TLS", true, async () => (await frontDoor()).httpsPort],
    [
      "at the API listener",
      true,
      async () => {
        const harness = await startGatewayHarness({
          kubeletPort: 1,
          isHttp2: true,
          timeouts: { handshakeMs },
        });
        onTestFinished(() => harness.close());
        return Number(harness.authority.split(":")[1]);
      },
    ],
  ] as const)("%s", async (_where, isSecure, start) => {
    const port = await start();
    const idle = await openClient(port, isSecure);
    idle.send(UNKNOWN, 0, 0, Buffer.alloc(100));
    for (const [, part] of HALF_HEADS) {
      const client = await openClient(port, isSecure);
      client.socket.write(part);
      await eventually("its end", () => client.isOver, { timeoutMs: 5 * HEAD_MS });
    }
    expect(idle.isOver).toBe(false);
  });
});
