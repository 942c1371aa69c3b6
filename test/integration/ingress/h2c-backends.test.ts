import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { eventually } from "../../support/eventually.ts";
import {
  FLAG,
  FRAME,
  type FramePeer,
  openFrameClient,
  type SeenFrame,
  startFrameBackend,
} from "../../support/frame-peer.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { ask, connectHttp2, type Http2Answer } from "../../support/http2-client.ts";
import { headerBlockOf } from "../../support/http2-frames.ts";
import { HOSTS, startScriptedDoor } from "../../support/scripted-door.ts";

async function doorTo(port: number): Promise<FrontDoor> {
  const door = await FrontDoor.start([
    ...serviceObjects("app", [{ port }], { appProtocol: "kubernetes.io/h2c" }),
    ingressObject("all", { defaultBackend: backend("app") }),
  ]);
  onTestFinished(() => door.stop());
  await door.serves(1);
  return door;
}

async function doorToFrames(onFrame: (peer: FramePeer, frame: SeenFrame) => void, settings?: Uint8Array) {
  const upstream = await startFrameBackend(onFrame, settings);
  onTestFinished(() => upstream.stop());
  return { upstream, door: await doorTo(upstream.port) };
}

const answer = (peer: FramePeer, streamId: number): void =>
  peer.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, streamId, headerBlockOf({ ":status": "200" }));

const isWhole = ({ type, flags }: SeenFrame): boolean =>
  type <= FRAME.headers && (flags & FLAG.endStream) !== 0;

/** So many requests at once, of one connection. `body`: POSTs. */
async function askMany(port: number, count: number, body?: Buffer): Promise<Http2Answer[]> {
  const session = await connectHttp2(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const method = body === undefined ? "GET" : "POST";
  return await Promise.all(
    Array.from({ length: count }, () => ask(session, "/", { ":method": method, ":authority": "a" }, body)),
  );
}

const statusesOf = (answers: readonly Http2Answer[]): number[] => answers.map(({ status }) => status);

it("a backend that refuses streams past five gets the others on more connections, with their bodies", async () => {
  const open = new Map<FramePeer, Set<number>>();
  const bodies: number[] = [];
  const { upstream, door } = await doorToFrames((peer, frame) => {
    const { type, streamId } = frame;
    const streams = open.get(peer) ?? new Set();
    open.set(peer, streams);
    if (type === FRAME.headers && streams.size >= 5) return peer.reset(streamId, 7);
    if (type === FRAME.headers) streams.add(streamId);
    if (!streams.has(streamId) || !isWhole(frame)) return;
    bodies.push(peer.bodyOf(streamId).length);
    // Late, so that others come meanwhile.
    setTimeout(() => {
      streams.delete(streamId);
      answer(peer, streamId);
    }, 50);
  });
  const answers = await askMany(door.httpPort, 30, Buffer.alloc(2_000));
  expect(statusesOf(answers)).toEqual(Array(30).fill(200));
  expect(bodies).toEqual(Array(30).fill(2_000));
  expect(upstream.peers.length).toBeGreaterThan(1);
});

it("what a GOAWAY leaves out is sent again on another connection", async () => {
  let first: FramePeer | undefined;
  const { upstream, door } = await doorToFrames((peer, frame) => {
    first ??= peer;
    if (!isWhole(frame)) return;
    if (peer !== first || frame.streamId < 5) answer(peer, frame.streamId);
    else if (frame.streamId === 5) peer.goAway(3, 0);
  });
  expect(statusesOf(await askMany(door.httpPort, 6, Buffer.alloc(10)))).toEqual(Array(6).fill(200));
  expect(upstream.peers).toHaveLength(2);
});

it("a connection with as many streams as its backend takes does not hold up a request", async () => {
  // SETTINGS_MAX_CONCURRENT_STREAMS of 1.
  let first: FramePeer | undefined;
  const { door } = await doorToFrames(
    (peer, frame) => {
      if (isWhole(frame) && peer !== first) answer(peer, frame.streamId);
      first ??= peer;
    },
    Buffer.from([0, 3, 0, 0, 0, 1]),
  );
  const session = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
  onTestFinished(() => session.destroy());
  session.request({ ":path": "/", ":authority": "a" }).on("error", () => {});
  await eventually("the first at the backend", () => first?.has(FRAME.headers, 1) === true);
  expect(statusesOf(await askMany(door.httpPort, 1))).toEqual([200]);
});

it("a client that gives up request upon request fails no other's", async () => {
  const server = createServer();
  const held = new Set<ServerHttp2Stream>();
  server.on("stream", (stream, { ":path": path }) => {
    stream.on("error", () => {}).resume();
    if (path === "/held") held.add(stream);
    // Late, so that some are on their way when a connection ends.
    else setTimeout(() => stream.destroyed || stream.respond({ ":status": 200 }, { endStream: true }), 30);
  });
  server.on("sessionError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const door = await doorTo((server.address() as AddressInfo).port);
  let isDone = false;
  const CANCELS = 1_000;
  /** A connection ends after 500 resets in a second; a busy machine takes more of them for CANCELS. */
  const attack = async (): Promise<void> => {
    const head = headerBlockOf({ ":method": "GET", ":scheme": "http", ":path": "/held", ":authority": "a" });
    for (let connection = 0; (connection < 6 || held.size <= CANCELS) && !isDone; connection += 1) {
      const attacker = await openFrameClient(door.httpPort);
      for (let first = 1; first < 1_800 && !attacker.isOver; first += 100) {
        const ids = Array.from({ length: 50 }, (_, index) => first + 2 * index);
        const before = held.size;
        for (const id of ids) attacker.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, id, head);
        for (let turn = 0; held.size < before + 50 && turn < 200 && !attacker.isOver; turn += 1)
          await delay(1);
        for (const id of ids) attacker.reset(id, 8);
      }
      attacker.raw.destroy();
    }
  };
  const attacks = attack();
  const honest = await connectHttp2(`http://127.0.0.1:${door.httpPort}`, {
    localAddress: "127.0.0.2",
  } as object);
  onTestFinished(() => honest.destroy());
  const statuses: number[] = [];
  let isAttacked = true;
  void attacks.finally(() => {
    isAttacked = false;
  });
  while (isAttacked) {
    const asked = Array.from({ length: 10 }, () =>
      ask(honest, "/", { ":method": "POST", ":authority": "a" }, "x"),
    );
    statuses.push(...(await Promise.all(asked)).map(({ status }) => status));
  }
  isDone = true;
  expect(held.size).toBeGreaterThan(CANCELS);
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  expect(statuses.length).toBeGreaterThan(5);
}, 180_000);

it("interim answers, many header lines and many trailers of a backend arrive", async () => {
  const door = await startScriptedDoor();
  onTestFinished(() => door.stop());
  const many = Array.from({ length: 300 }, (_, index) => [`x-line-${index}`, "v"] as const);
  door.backends.h2c.answer = {
    interims: [{ status: 103, lines: [["Link", "</a.css>; rel=preload"]] }],
    status: 200,
    lines: many,
    body: "ok",
    trailers: many.map(([name]) => [`t-${name}`, "v"] as const),
  };
  const { status, interims, headers, body, isWhole } = await door.clients.h1.get(HOSTS.h2c);
  expect({ status, interims, body, isWhole }).toEqual({
    status: 200,
    interims: [103],
    body: "ok",
    isWhole: true,
  });
  expect([...headers.keys()].filter((name) => name.startsWith("x-line-"))).toHaveLength(300);
});
