import { once } from "node:events";
import { type ClientHttp2Session, constants } from "node:http2";
import { connect, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { Http2Connections, type Http2Request } from "../../../src/listeners/http2-connections.ts";
import { defaultLimits, defaultTimeouts } from "../../support/default-configuration.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { FLAG, FRAME, openFrameClient } from "../../support/frame-peer.ts";
import { closeServer, listen } from "../../support/http/loopback.ts";
import { ask, connectHttp2 } from "../../support/http2-client.ts";
import { frameOf, headerBlockOf } from "../../support/http2-frames.ts";

const MAX_RESETS_A_SECOND = fixedBound("src/listeners/http2-connections.ts", "MAX_RESETS_A_SECOND");
const SPARE_HEADER_PAIRS = fixedBound("src/listeners/http2-connections.ts", "SPARE_HEADER_PAIRS");

const TIMES = { takingMs: defaultTimeouts.streamIdleMs, headMs: defaultTimeouts.handshakeMs };

async function serve(connections: Http2Connections, sockets = new Set<Socket>()): Promise<number> {
  const server = createServer((socket) => {
    sockets.add(socket);
    connections.accept(socket);
  });
  onTestFinished(() => closeServer(server, sockets));
  return listen(server);
}

it("a connection without a stream is closed when it has been idle, one with a silent stream is not", async () => {
  const connections = new Http2Connections(
    defaultLimits,
    {
      onRequest: ({ stream, pseudo }) => {
        stream.respond({ ":status": 200 });
        if (pseudo[":path"] === "/") stream.end("done");
      },
      onConnect: () => {},
    },
    { ...TIMES, idleMs: 1_000 },
  );
  const port = await serve(connections);
  const waiting = await connectHttp2(`http://127.0.0.1:${port}`);
  const stream = waiting.request({ ":path": "/watch" });
  await once(stream, "response");
  const idle = await connectHttp2(`http://127.0.0.1:${port}`);
  const closed = once(idle, "close");
  expect((await ask(idle, "/")).body).toBe("done");
  // The other has been silent for longer.
  await closed;
  expect(waiting.closed).toBe(false);
  stream.close();
  await once(waiting, "close");
});

it.each([
  ["an answer that is written as it comes", false],
  ["an answer that has been written to its end", true],
])("%s is over when its client resets the stream without an error", async (_what, isEnded) => {
  const closed: Promise<void>[] = [];
  const onRequest = ({ stream }: Http2Request): void => {
    closed.push(new Promise((resolve) => stream.once("close", resolve)));
    stream.respond({ ":status": 200 });
    stream.write(Buffer.alloc(300_000));
    if (isEnded) stream.end();
  };
  const port = await serve(new Http2Connections(defaultLimits, { onRequest, onConnect: () => {} }, TIMES));
  const session = await connectHttp2(`http://127.0.0.1:${port}`);
  const stream = session.request({ ":path": "/" });
  await once(stream, "response");
  stream.close(constants.NGHTTP2_NO_ERROR);
  expect(closed).toHaveLength(1);
  await closed[0];
  expect(session.closed).toBe(false);
  session.destroy();
});

it("a client that leaves many downloads gets a new connection in time, and is never refused", async () => {
  const body = Buffer.alloc(300_000);
  const small = {
    ...defaultLimits,
    maxHttp2Streams: 4,
    socketBufferBytes: 4_096,
    maxRequestHeaderBytes: 8_192,
  };
  const onRequest = ({ stream }: Http2Request): void => {
    stream.respond({ ":status": 200 });
    stream.end(body);
  };
  const port = await serve(new Http2Connections(small, { onRequest, onConnect: () => {} }, TIMES));
  let connections = 0;
  let session: ClientHttp2Session | undefined;
  for (let download = 0; download < 60; download++) {
    if (session === undefined || session.closed) {
      session = await connectHttp2(`http://127.0.0.1:${port}`);
      connections += 1;
    }
    const stream = session.request({ ":path": "/" });
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.on("error", () => {}).once("response", () => stream.close(constants.NGHTTP2_CANCEL));
    await closed;
    // Sent before GOAWAY arrived: RFC 9113 section 8.7 lets a client send it again. Anything else is a refusal.
    expect([constants.NGHTTP2_CANCEL, constants.NGHTTP2_REFUSED_STREAM]).toContain(stream.rstCode);
  }
  session?.destroy();
  expect(connections).toBeGreaterThan(1);
});

it.each([
  ["and says no more", false],
  ["and asks on behind its GOAWAY", true],
])("a client that stops reading %s is let go with what is queued for it", async (_what, asksOn) => {
  let open = 0;
  let resets = 0;
  const onRequest = ({ stream }: Http2Request): void => {
    open += 1;
    stream.once("close", () => {
      open -= 1;
      resets += 1;
    });
    stream.respond({ ":status": 200 });
    stream.end(Buffer.alloc(defaultLimits.socketBufferBytes));
    // What a listener does with a stream of which nothing is taken.
    stream.setTimeout(200, () => stream.close(constants.NGHTTP2_CANCEL));
  };
  const connections = new Http2Connections(
    { ...defaultLimits, maxHttp2Streams: 1_000 },
    { onRequest, onConnect: () => {} },
    { ...TIMES, idleMs: 300, takingMs: 300 },
  );
  const sockets = new Set<Socket>();
  const client = connect(await serve(connections, sockets), "127.0.0.1");
  onTestFinished(() => void client.destroy());
  await once(client, "connect");
  client.pause();
  const window = Buffer.alloc(4);
  window.writeUInt32BE(0x7fff_ffff - 65_535);
  client.write(
    Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      frameOf(SETTINGS, 0, 0, LARGE_INITIAL_WINDOW),
      frameOf(WINDOW_UPDATE, 0, 0, window),
    ]),
  );
  for (let id = 1; id < 400; id += 2)
    client.write(frameOf(HEADERS, END_STREAM_AND_HEADERS, id, headerBlockOf(GET)));
  if (asksOn) {
    const last = frameOf(HEADERS, END_STREAM_AND_HEADERS, 401, headerBlockOf(GET));
    client.write(Buffer.concat([frameOf(7, 0, 0, Buffer.alloc(8)), last]));
  }
  await eventually(
    () => `the end of its streams: ${open} open, ${resets} over`,
    () => resets > 0 && open === 0,
  );
  const [served] = sockets;
  await eventually("the end of the connection", () => served?.destroyed === true);
});

it.each([
  ["in the middle of a head", [frameOf(1, 1, 1, headerBlockOf({ ":method": "GET" }))]],
  ["in the middle of a frame", [frameOf(1, 5, 1, Buffer.alloc(1_000)).subarray(0, 500)]],
  ["and keeps its end open", []],
])("an idle client that stops %s is let go, whatever it sends on", async (_what, frames) => {
  const connections = new Http2Connections(
    defaultLimits,
    { onRequest: () => {}, onConnect: () => {} },
    { ...TIMES, idleMs: 300 },
  );
  const sockets = new Set<Socket>();
  const client = connect({ port: await serve(connections, sockets), host: "127.0.0.1", allowHalfOpen: true });
  client.on("error", () => {}).resume();
  onTestFinished(() => void client.destroy());
  client.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frameOf(4, 0, 0), ...frames]));
  const drip = setInterval(() => frames.length > 0 && client.write(Buffer.of(0)), 20);
  onTestFinished(() => clearInterval(drip));
  await eventually("the end of the connection", () => [...sockets].some(({ destroyed }) => destroyed), {
    timeoutMs: 10_000,
  });
});

const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const WINDOW_UPDATE = 8;
/** SETTINGS_INITIAL_WINDOW_SIZE of 2^31 - 1. */
const LARGE_INITIAL_WINDOW = Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff]);
/** SETTINGS_INITIAL_WINDOW_SIZE of 0. */
const NO_INITIAL_WINDOW = Buffer.from([0, 4, 0, 0, 0, 0]);
const SETTINGS = 4;
const END_STREAM = 1;
const END_HEADERS = 4;
const END_STREAM_AND_HEADERS = 5;
const GET = { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "x" };

/** A client of bare frames, of a server that answers nothing. `isOver` once the server has closed the connection. */
async function bareClient() {
  const connections = new Http2Connections(
    defaultLimits,
    { onRequest: () => {}, onConnect: () => {} },
    TIMES,
  );
  const port = await serve(connections);
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {}).resume();
  let isOver = false;
  const over = new Promise<void>((resolve) => {
    socket.once("close", () => {
      isOver = true;
      resolve();
    });
  });
  socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frameOf(SETTINGS, 0, 0)]));
  let sent = 0;
  const send = (flags: number, headers: Record<string, string>): Promise<void> =>
    new Promise((resolve) => {
      sent += 1;
      socket.write(frameOf(HEADERS, flags, 2 * sent - 1, headerBlockOf(headers)), () => resolve());
    });
  return { send, over, isOver: () => isOver };
}

it.each([
  // Uppercase names are malformed (RFC 9113 section 8.2): each costs its stream, and too many the connection.
  ["frames that are wrong", END_STREAM_AND_HEADERS, { ...GET, Upper: "case" }, 10],
  ["streams past the ones at a time", END_HEADERS, GET, defaultLimits.maxHttp2Streams + 100],
])("a connection of too many %s is closed", async (_what, flags, headers, allowed) => {
  const client = await bareClient();
  for (let sent = 0; sent < allowed; sent += 1) await client.send(flags, headers);
  expect(client.isOver()).toBe(false);
  for (let more = 0; more < 20 && !client.isOver(); more += 1) await client.send(flags, headers);
  await client.over;
});

const CANCEL = Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL]);
const POST = { ...GET, ":method": "POST" };

/** Ways to be rid of a stream: its frames, and whether the server has answered it by then. */
const RIDDANCES: readonly (readonly [string, boolean, (id: number) => readonly Buffer[]])[] = [
  [
    "takes back its requests",
    false,
    (id) => [frameOf(HEADERS, END_HEADERS, id, headerBlockOf(POST)), frameOf(RST_STREAM, 0, id, CANCEL)],
  ],
  [
    // Its window is empty, so the answers wait.
    "takes back requests that are answered",
    true,
    (id) => [
      frameOf(HEADERS, END_STREAM_AND_HEADERS, id, headerBlockOf(GET)),
      ...(id > 61 ? [frameOf(RST_STREAM, 0, id - 60, CANCEL)] : []),
    ],
  ],
  [
    // CVE-2025-8671 (MadeYouReset): the server resets, so that the stream no longer counts.
    "has its requests reset by bodies that are shorter than they say",
    false,
    (id) => [
      frameOf(HEADERS, END_HEADERS, id, headerBlockOf({ ...POST, "content-length": "10" })),
      frameOf(DATA, END_STREAM, id, Buffer.from("x")),
    ],
  ],
];

it.each(
  RIDDANCES,
)("a connection whose client %s faster than it may is closed", async (what, answers, frames) => {
  const mayBeSooner = what.startsWith("has its requests reset");
  let served = 0;
  let isKeptServed = false;
  const onRequest = ({ stream, pseudo }: Http2Request): void => {
    served += 1;
    if (pseudo[":path"] === "/kept") isKeptServed = true;
    if (!answers && pseudo[":path"] !== "/kept") return;
    stream.respond({ ":status": 200 });
    stream.end("answer");
  };
  const port = await serve(new Http2Connections(defaultLimits, { onRequest, onConnect: () => {} }, TIMES));
  const socket = connect(port, "127.0.0.1");
  let isOver = false;
  socket.on("error", () => {}).resume();
  socket.once("close", () => {
    isOver = true;
  });
  const settings = frameOf(SETTINGS, 0, 0, answers ? NO_INITIAL_WINDOW : undefined);
  socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings]));
  let streamId = -1;
  const next = (): Buffer => {
    streamId += 2;
    return Buffer.concat(frames(streamId));
  };
  /** So many at a time that none is beyond the streams that it may have open. */
  const write = async (bursts: number): Promise<void> => {
    for (let sent = 0; sent < bursts && !isOver; sent++) {
      socket.write(Buffer.concat(Array.from({ length: 200 }, next)));
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await write(1);
  streamId += 2;
  const kept = { ...GET, ":path": "/kept" };
  socket.write(frameOf(HEADERS, END_STREAM_AND_HEADERS, streamId, headerBlockOf(kept)));
  // nghttp2 of newer releases of Node.js closes sooner a connection whose bodies are too short.
  await eventually("the request behind them is served", () => isKeptServed || (isOver && mayBeSooner));
  expect(isOver && !mayBeSooner).toBe(false);
  await write(50);
  await eventually("the connection is closed", () => isOver);
  // What was read at once with the last that it may take back is served, too.
  expect(served).toBeLessThan(2 * MAX_RESETS_A_SECOND + 1_000);
});

it("a head has so many lines at most, however small", async () => {
  const served: number[] = [];
  const onRequest = ({ stream, rawHeaders }: Http2Request): void => {
    served.push(rawHeaders.length / 2);
    stream.respond({ ":status": 200 }, { endStream: true });
  };
  const port = await serve(new Http2Connections(defaultLimits, { onRequest, onConnect: () => {} }, TIMES));
  const client = await openFrameClient(port);
  const allowed = defaultLimits.maxRequestHeaders + SPARE_HEADER_PAIRS;
  const indexed = (count: number) =>
    // Static entry 32 (RFC 7541 appendix A): an empty cookie.
    Buffer.concat([headerBlockOf(GET), Buffer.alloc(count - Object.keys(GET).length, 0x80 | 32)]);
  const flags = FLAG.endHeaders | FLAG.endStream;
  [allowed, allowed + 1, 16_000, allowed].forEach((count, at) => {
    client.send(FRAME.headers, flags, 2 * at + 1, indexed(count));
  });
  await eventually("the last answer", () => client.endsOf(7).length > 0);
  expect(served).toEqual([allowed, allowed]);
  for (const id of [3, 5])
    expect(client.endsOf(id)).toEqual([`RST_STREAM ${constants.NGHTTP2_ENHANCE_YOUR_CALM}`]);
});
