import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { FLAG, FRAME, type FrameClient, openFrameClient } from "../../support/frame-peer.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { answering, listenRaw, type RawUpstream } from "../../support/http/loopback.ts";
import { headerBlockOf } from "../../support/http2-frames.ts";

const REFUSAL_DEADLINE_MS = fixedBound("src/http/upgrade/copy-refusal.ts", "REFUSAL_DEADLINE_MS");
/** More than all buffers on the way hold. */
const LONG_BYTES = 64 * 1024 * 1024;

let door: FrontDoor;
let long: RawUpstream;
let short: RawUpstream;

beforeAll(async () => {
  const head = (bytes: number): string => `HTTP/1.1 403 Forbidden\r\nContent-Length: ${bytes}\r\n\r\n`;
  long = await listenRaw(answering(head(LONG_BYTES), Buffer.alloc(LONG_BYTES, "x")));
  short = await listenRaw(answering(`${head(3)}no\n`));
  const paths = ["long", "short"].map((name) => ({
    path: `/${name}`,
    pathType: "Prefix",
    backend: backend(name),
  }));
  door = await FrontDoor.start([
    ...serviceObjects("long", [long]),
    ...serviceObjects("short", [short]),
    ingressObject("all", { rules: [{ http: { paths } }] }),
  ]);
  await door.serves(1);
});
afterAll(async () => {
  await door.stop();
  await Promise.all([long.close(), short.close()]);
});

/** Asks for a WebSocket over HTTP/1.1, and reads nothing. */
async function http1Client(isSecure: boolean, path: string): Promise<Socket> {
  const socket = connect({
    port: isSecure ? door.httpsPort : door.httpPort,
    host: "127.0.0.1",
    allowHalfOpen: true,
  });
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  await once(socket, "connect");
  const client: Duplex = isSecure ? connectTls({ socket, rejectUnauthorized: false }) : socket;
  client.on("error", () => {});
  if (isSecure) await once(client, "secureConnect");
  const key = Buffer.alloc(16).toString("base64");
  const lines = [`GET ${path} HTTP/1.1`, "Host: a", "Connection: Upgrade", "Upgrade: websocket"];
  client.write([...lines, "Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${key}`, "", ""].join("\r\n"));
  return socket;
}

/** The same by RFC 8441; the window of each stream is 0. */
async function http2Client(isSecure: boolean, path: string): Promise<FrameClient> {
  const client = await openFrameClient(isSecure ? door.httpsPort : door.httpPort, isSecure);
  client.send(FRAME.settings, 0, 0, Buffer.of(0, 4, 0, 0, 0, 0));
  const head = { ":method": "CONNECT", ":protocol": "websocket", ":scheme": "https", ":path": path };
  const block = headerBlockOf({ ...head, ":authority": "a", "sec-websocket-version": "13" });
  client.send(FRAME.headers, FLAG.endHeaders, 1, block);
  return client;
}

const isOver = (socket: Socket): boolean => socket.destroyed || socket.readableEnded;

it("a backend's refusal of a WebSocket ends within its time for clients that read nothing", async () => {
  const descriptors = (): number => readdirSync("/proc/self/fd").length;
  const before = descriptors();
  const startMs = performance.now();
  const paths = ["/long", "/short"];
  for (const path of paths) await Promise.all([http1Client(false, path), http1Client(true, path)]);
  const streams = await Promise.all(
    paths.flatMap((path) => [http2Client(false, path), http2Client(true, path)]),
  );
  await eventually("the backends are asked", () => long.sockets.length + short.sockets.length === 8);
  const timeoutMs = REFUSAL_DEADLINE_MS + 8_000;
  await eventually("the ends of the streams", () => streams.every((client) => client.endsOf(1).length > 0), {
    timeoutMs,
  });
  // INTERNAL_ERROR: with NO_ERROR the answer would be complete (RFC 9113 section 8.1).
  for (const client of streams) expect(client.endsOf(1)).toEqual(["RST_STREAM 2"]);
  await eventually("the ends at the backends", () => [...long.sockets, ...short.sockets].every(isOver), {
    timeoutMs,
  });
  // The clients' own ends and the streams' connections stay; the backends' ends are half open.
  for (const socket of [...long.sockets, ...short.sockets]) socket.destroy();
  await eventually("the ends at the front door", () => descriptors() <= before + 12, { timeoutMs });
  expect(performance.now() - startMs).toBeLessThan(2 * REFUSAL_DEADLINE_MS);
});
