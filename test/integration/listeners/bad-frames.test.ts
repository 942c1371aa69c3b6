import { writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, describe, it, onTestFinished } from "vitest";
import { AccessGateway, EXEC_HEAD } from "../../support/access-gateway.ts";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, type FrameClient, openFrameClient } from "../../support/frame-peer.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { listenRaw, type RawUpstream } from "../../support/http/loopback.ts";
import { frameOf, headerBlockOf } from "../../support/http2-frames.ts";

let upstream: RawUpstream;
let door: FrontDoor;

beforeAll(async () => {
  upstream = await listenRaw(() => {});
  door = await FrontDoor.start([
    ...serviceObjects("app", [upstream]),
    ingressObject("all", { defaultBackend: backend("app") }),
  ]);
  await door.serves(1);
});
afterAll(async () => {
  await door.stop();
  await upstream.close();
});

/** RFC 9113 took priorities away, and nghttp2 behind 1.61, which Node.js 20 has, ignores the frame. */
const KNOWS_PRIORITIES = Number(process.versions.nghttp2?.split(".")[1]) <= 61;

const HEAD = { ":method": "POST", ":scheme": "http", ":path": "/", ":authority": "a" };

/** Each ends the connection, by RFC 9113 or by nghttp2; what Node.js 20 says of it differs. */
const BAD_FRAMES: readonly (readonly [string, Buffer])[] = [
  ["a PING of seven bytes", frameOf(FRAME.ping, 0, 0, Buffer.alloc(7))],
  ...(KNOWS_PRIORITIES
    ? [["a PRIORITY of a stream on itself", frameOf(2, 0, 1, Buffer.from([0, 0, 0, 1, 15]))] as const]
    : []),
  ["SETTINGS of five bytes", frameOf(FRAME.settings, 0, 0, Buffer.alloc(5))],
  ["a header block that is none", frameOf(FRAME.headers, FLAG.endHeaders, 2_001, Buffer.alloc(10, 0xff))],
  ["DATA on an idle stream", frameOf(FRAME.data, 0, 2_001, Buffer.from("x"))],
  ["CONTINUATION behind nothing", frameOf(9, FLAG.endHeaders, 1, Buffer.from([0x82]))],
  ["a WINDOW_UPDATE of nothing", frameOf(8, 0, 0, Buffer.alloc(4))],
  ["a PUSH_PROMISE", frameOf(5, FLAG.endHeaders, 1, Buffer.from([0, 0, 0, 2]))],
  ["RST_STREAM of an idle stream", frameOf(FRAME.reset, 0, 2_001, Buffer.from([0, 0, 0, 8]))],
  // Node.js 22 aborted the process.
  [
    "a GOAWAY with an error, with a request and its body behind it",
    Buffer.concat([
      frameOf(FRAME.goAway, 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1])),
      frameOf(FRAME.headers, FLAG.endHeaders, 2_001, headerBlockOf(HEAD)),
      frameOf(FRAME.data, 0, 2_001, Buffer.from("x")),
    ]),
  ],
];

async function badClient(isSecure: boolean, frame: Buffer, streams: number): Promise<FrameClient> {
  const client = await openFrameClient(isSecure ? door.httpsPort : door.httpPort, isSecure);
  for (let id = 1; id < 2 * streams; id += 2)
    client.send(FRAME.headers, FLAG.endHeaders, id, headerBlockOf(HEAD));
  await eventually("the requests at the backend", () => open(upstream.sockets) >= streams);
  client.socket.write(frame);
  return client;
}

const open = (sockets: readonly Socket[]): number =>
  sockets.filter((socket) => !socket.destroyed && !socket.readableEnded).length;

describe.each([
  ["in the clear", false],
  ["over TLS", true],
] as const)("a connection of HTTP/2 %s is closed behind the GOAWAY, and its exchanges end,", (_where, isSecure) => {
  it.each(BAD_FRAMES)("after %s", async (_what, frame) => {
    const client = await badClient(isSecure, frame, 5);
    await eventually("the end of the connection", () => client.isOver, { timeoutMs: 2_000 });
    await eventually("the end of its exchanges", () => open(upstream.sockets) === 0, { timeoutMs: 2_000 });
  });

  it.each(BAD_FRAMES)("without a stream, after %s", async (_what, frame) => {
    const client = await badClient(isSecure, frame, 0);
    await eventually("the end of the connection", () => client.isOver, { timeoutMs: 2_000 });
  });

  it("though the client breaks off at once", async () => {
    for (const [, frame] of BAD_FRAMES) (await badClient(isSecure, frame, 5)).raw.resetAndDestroy();
    await eventually("the end of its exchanges", () => open(upstream.sockets) === 0, { timeoutMs: 2_000 });
  });
});

describe("an exec session on a stream of HTTP/2", () => {
  it.each(
    BAD_FRAMES.slice(0, 2),
  )("ends with its connection, and so does its command, after %s", async (_what, frame) => {
    const gateway = await AccessGateway.start(
      (folder) => {
        writeFileSync(path.join(folder, "tokens.csv"), "t,ann,1\n");
        return {
          authentication: { tokenAuthFile: "tokens.csv" },
          authorization: { mode: ["AlwaysAllow"] },
          timeouts: { shutdownGracePeriod: "0s" },
        };
      },
      { onStream: () => {} },
    );
    onTestFinished(() => gateway.stop());
    const { kubelet } = gateway;
    const client = await openFrameClient(Number(gateway.authority.split(":")[1]), true);
    client.send(FRAME.headers, FLAG.endHeaders, 1, headerBlockOf(EXEC_HEAD));
    await eventually("the command", () => kubelet.sessions.length === 1);
    client.socket.write(frame);
    await eventually("the end of the connection", () => client.isOver, { timeoutMs: 2_000 });
    const isOver = (): boolean =>
      kubelet.sessions.every(({ socket }) => socket.destroyed || socket.readableEnded);
    await eventually("the end of the command", isOver, { timeoutMs: 5_000 });
    await eventually("no session is left", async () => {
      const samples = await gateway.readMetrics();
      return (samples.get('sluice_streaming_active_sessions{subresource="exec"}') ?? 0) === 0;
    });
  });
});
