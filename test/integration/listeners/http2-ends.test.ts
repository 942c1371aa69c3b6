import type { Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, type FrameClient, openFrameClient } from "../../support/frame-peer.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { afterHead, listenRaw } from "../../support/http/loopback.ts";
import { headerBlockOf } from "../../support/http2-frames.ts";
import { watchResets } from "../../support/reset-spy.ts";
import { descriptors, seededChoices } from "./random-ends.ts";

const ENDS = process.env.CI === undefined ? 400 : 10_000;
const AT_ONCE = 8;

const { random, pick } = seededChoices(20_261_125);

const HEAD = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
const PART = "x".repeat(70_000);
/** What a backend does with a request. None of its connections is kept. */
const ANSWERS: readonly ((socket: Socket) => void)[] = [
  () => {},
  (socket) => void socket.end(`${HEAD}Content-Length: 2\r\n\r\nok`),
  (socket) => void socket.end("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno\n"),
  (socket) => void socket.write(`${HEAD}Content-Length: 700000\r\n\r\n${PART}`),
  (socket) => void socket.end(`${HEAD}Content-Length: 700000\r\n\r\n${PART}`),
  (socket) => void socket.write(`${HEAD}\r\n${PART}`),
];

type End = (client: FrameClient, streams: readonly number[]) => void;
const ENDINGS: readonly End[] = [
  ({ raw }) => void raw.end(),
  ({ raw }) => void raw.resetAndDestroy(),
  (client, streams) => {
    for (const id of streams) client.reset(id, pick([0, 2, 5, 8]));
    client.raw.end();
  },
  (client, streams) => {
    for (const id of streams) client.send(FRAME.data, FLAG.endStream, id);
    client.raw.resetAndDestroy();
  },
  (client) => client.goAway(0, 1),
  (client) => {
    client.goAway(0, 0);
    client.raw.end();
  },
  (client) => {
    client.goAway(0, 0);
    const head = { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "a" };
    client.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 9, headerBlockOf(head));
    client.raw.end();
  },
  (client) => client.send(FRAME.ping, 0, 0, Buffer.alloc(7)),
  (client) => client.send(FRAME.headers, FLAG.endHeaders, 99, Buffer.alloc(10, 0xff)),
];

const clients: FrameClient[] = [];

/** One connection with a few streams, from its preface to its end. */
async function oneEnd(door: FrontDoor, streams: readonly number[]): Promise<void> {
  const isSecure = random() < 0.5;
  const client = await openFrameClient(isSecure ? door.httpsPort : door.httpPort, isSecure);
  for (const id of streams) {
    const method = pick(["GET", "POST"]);
    const head = { ":method": method, ":scheme": "http", ":path": "/", ":authority": "a" };
    const flags = FLAG.endHeaders | (method === "GET" ? FLAG.endStream : 0);
    client.send(FRAME.headers, flags, id, headerBlockOf(head));
    if (method === "POST" && random() < 0.5) client.send(FRAME.data, 0, id, Buffer.alloc(1_000));
  }
  const frames = Math.floor(random() * 6);
  for (let turn = 0; turn < 50 && client.frames.length < frames; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
  pick(ENDINGS)(client, streams);
  clients.push(client);
  // Half of them are still there when the front door has to be done with them.
  if (random() < 0.5) client.raw.destroy();
}

it.runIf(process.platform === "linux")(
  `${ENDS} random ends of HTTP/2 exchanges leave nothing behind`,
  async () => {
    const resets = await watchResets();
    const upstream = await listenRaw((socket) => afterHead(socket, () => pick(ANSWERS)(socket)));
    onTestFinished(() => upstream.close());
    const door = await FrontDoor.start([
      ...serviceObjects("app", [upstream]),
      ingressObject("all", { defaultBackend: backend("app") }),
    ]);
    await door.serves(1);
    await oneEnd(door, [1]);
    const open = (): number =>
      upstream.sockets.filter((socket) => !socket.destroyed && !socket.readableEnded).length;
    await eventually("a quiet front door", () => open() === 0);
    const before = descriptors();
    let ended = 0;
    const worker = async (): Promise<void> => {
      while (ended < ENDS) {
        const streams = [1, 3, 5, 7].slice(0, 1 + Math.floor(random() * 4));
        ended += streams.length;
        await oneEnd(door, streams);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    await eventually(
      () => `the end of ${open()} exchanges`,
      () => open() === 0,
    );
    await eventually("the end of all connections", () =>
      clients.every(({ isOver, raw }) => isOver || raw.destroyed),
    );
    for (const socket of [...upstream.sockets, ...clients.map(({ raw }) => raw)]) socket.destroy();
    await eventually(
      () => `as few descriptors as before: ${descriptors()}, not ${before}`,
      () => descriptors() <= before,
    );
    const startedMs = performance.now();
    await door.stop();
    expect(resets).toEqual([]);
    // An exchange that is left would take the whole grace period.
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  },
  600_000,
);
