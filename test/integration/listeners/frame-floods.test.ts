import { expect, it } from "vitest";
import { Http2Connections, type Http2Request } from "../../../src/listeners/http2-connections.ts";
import { defaultLimits, defaultTimeouts } from "../../support/default-configuration.ts";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, type FrameClient, openFrameClient } from "../../support/frame-peer.ts";
import { acceptUntilEnd } from "../../support/http/loopback.ts";
import { frameOf, headerBlockOf } from "../../support/http2-frames.ts";

const NO_ERROR = 0;
const INTERNAL_ERROR = 2;
const ENHANCE_YOUR_CALM = 11;
const PRIORITY_UPDATE = 16;
const UNKNOWN = 0xbe;
const POST = headerBlockOf({ ":method": "POST", ":scheme": "http", ":path": "/", ":authority": "a" });
const ONE = Buffer.of(0, 0, 0, 1);

/** A server that reads every body, and answers requests that are whole. */
function serve(): Promise<number> {
  return listen(({ stream }) => {
    stream.resume().once("end", () => {
      if (stream.destroyed) return;
      stream.respond({ ":status": 200 });
      stream.end(Buffer.alloc(10_000));
    });
  });
}

async function listen(onRequest: (request: Http2Request) => void): Promise<number> {
  const connections = new Http2Connections(
    defaultLimits,
    { onRequest, onConnect: () => {} },
    { takingMs: defaultTimeouts.streamIdleMs, headMs: defaultTimeouts.handshakeMs },
  );
  return acceptUntilEnd((socket) => connections.accept(socket));
}

async function open(port: number): Promise<FrameClient> {
  const client = await openFrameClient(port);
  client.send(FRAME.headers, FLAG.endHeaders, 1, POST);
  await eventually("its SETTINGS", () => client.has(FRAME.settings, 0));
  return client;
}

const codeOf = ({ frames }: FrameClient): number | undefined =>
  frames.find(({ type }) => type === FRAME.goAway)?.payload.readUInt32BE(4);

interface Flood {
  readonly what: string;
  readonly frame: Buffer;
  /** The code of the GOAWAY; absent: ENHANCE_YOUR_CALM. */
  readonly code?: number;
}

const FLOODS: readonly Flood[] = [
  { what: "WINDOW_UPDATE of one byte", frame: frameOf(FRAME.windowUpdate, 0, 0, ONE) },
  { what: "WINDOW_UPDATE of a stream that is closed", frame: frameOf(FRAME.windowUpdate, 0, 3, ONE) },
  { what: "PRIORITY", frame: frameOf(FRAME.priority, 0, 1, Buffer.of(0, 0, 0, 3, 15)) },
  { what: "PRIORITY of an idle stream", frame: frameOf(FRAME.priority, 0, 1_001, Buffer.of(0, 0, 0, 1, 15)) },
  { what: "PRIORITY_UPDATE", frame: frameOf(PRIORITY_UPDATE, 0, 0, Buffer.of(0, 0, 0, 1, 0x75, 0x3d, 0x31)) },
  { what: "unknown frames", frame: frameOf(UNKNOWN, 0, 0) },
  { what: "DATA that is padding alone", frame: frameOf(FRAME.data, 8, 1, Buffer.of(0)) },
  { what: "DATA of a stream that is closed", frame: frameOf(FRAME.data, 0, 3, Buffer.from("a")) },
  {
    what: "trailers that do not end",
    frame: frameOf(FRAME.headers, FLAG.endHeaders, 1, headerBlockOf({ a: "b" })),
  },
  // Its connection closes behind the stream at the first one.
  { what: "GOAWAY", frame: frameOf(FRAME.goAway, 0, 0, Buffer.alloc(8)), code: NO_ERROR },
  // By nghttp2's own bound for resets.
  {
    what: "RST_STREAM of a stream that is closed",
    frame: frameOf(FRAME.reset, 0, 3, Buffer.of(0, 0, 0, 8)),
    code: INTERNAL_ERROR,
  },
];

it.each(FLOODS)("a flood of $what ends its connection", async ({ frame, code = ENHANCE_YOUR_CALM }) => {
  const client = await open(await serve());
  client.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 3, POST);
  await eventually("an answer", () => client.endsOf(3).length > 0, { timeoutMs: 5_000 });
  const flood = Buffer.concat(new Array<Buffer>(1_000).fill(frame));
  const more = (): void => {
    if (client.isOver) return;
    client.socket.write(flood, () => setImmediate(more));
  };
  more();
  await eventually("its end", () => client.isOver, { timeoutMs: 20_000 });
  expect(codeOf(client)).toBe(code);
});

it("a connection stays that sends such frames as clients do", async () => {
  const client = await open(await serve());
  // Uploads whose stream is reset while they come, downloads, and what goes with each.
  for (let id = 3; id < 163; id += 2) {
    client.send(FRAME.headers, FLAG.endHeaders, id, POST);
    client.send(FRAME.priority, 0, id, Buffer.of(0, 0, 0, 0, 15));
    client.send(FRAME.data, 0, id, Buffer.alloc(16_000));
    if (id % 4 === 3) client.reset(id, 8);
    else client.send(FRAME.data, FLAG.endStream, id, Buffer.alloc(16_000));
    for (let ping = 0; ping < 20; ping++) client.send(FRAME.ping, 0, 0, Buffer.alloc(8));
    await eventually("its end", () => id % 4 === 3 || client.endsOf(id).length > 0 || client.isOver);
  }
  client.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 501, POST);
  await eventually("a last answer", () => client.endsOf(501).length > 0);
  expect([client.isOver, codeOf(client)]).toEqual([false, undefined]);
});

it("a connection stays that measures its round trips while it receives small messages", async () => {
  const ping = Buffer.concat([
    frameOf(FRAME.windowUpdate, 0, 0, ONE),
    frameOf(FRAME.ping, 0, 0, Buffer.alloc(8)),
  ]);
  const onRequest = ({ stream }: Http2Request): void => {
    stream.respond({ ":status": 200 });
    const timer = setInterval(() => stream.destroyed || stream.write(Buffer.alloc(20)), 1);
    stream.once("close", () => clearInterval(timer));
  };
  const client = await openFrameClient(await listen(onRequest));
  let pings = 0;
  client.onFrame = ({ type }) => {
    client.frames.length = 0;
    if (type !== FRAME.data) return;
    client.socket.write(ping);
    pings += 1;
  };
  for (let id = 1; id < 200; id += 2) client.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, id, POST);
  await eventually("4 MB of pings", () => pings > 130_000 || client.isOver, { timeoutMs: 60_000 });
  expect(client.isOver).toBe(false);
});
