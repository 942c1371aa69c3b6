import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import path from "node:path";
import { breakStream, cancelStream } from "@sluice/client/internal/net/abort-socket";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Http2Connections, type Http2Request } from "../../../src/listeners/http2-connections.ts";
import { AccessGateway, EXEC_HEAD, EXEC_PATH } from "../../support/access-gateway.ts";
import { defaultLimits } from "../../support/default-configuration.ts";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, type FrameClient, openFrameClient } from "../../support/frame-peer.ts";
import { frameOf, headerBlockOf } from "../../support/http2-frames.ts";
import { watchResets } from "../../support/reset-spy.ts";

// Node.js 20 sends what is queued when a stream is reset, also while nghttp2 reads. Some of it frees
// the stream that is being read (nodejs/node#64113), and nghttp2 writes into freed memory.

const STRANGER = { ...EXEC_HEAD, authorization: "Bearer nobody" };
const GET = { ":method": "GET", ":scheme": "https", ":path": "/", ":authority": "a" };

const head = (id: number, fields: Record<string, string>, flags: number = FLAG.endHeaders): Buffer =>
  frameOf(FRAME.headers, flags, id, headerBlockOf(fields));
const goAway = frameOf(FRAME.goAway, 0, 0, Buffer.alloc(8));
const reset = (id: number): Buffer => frameOf(FRAME.reset, 0, id, Buffer.from([0, 0, 0, 8]));
const ended = FLAG.endHeaders | FLAG.endStream;

/** What a client writes at once. */
const READS: readonly (readonly [string, readonly Buffer[]])[] = [
  ["a GOAWAY, with a request behind it", [goAway, head(1, GET, ended)]],
  ["a request, a GOAWAY, and a request", [head(1, EXEC_HEAD), goAway, head(3, GET, ended)]],
  ["three requests of a stranger", [head(1, STRANGER), head(3, STRANGER), head(5, GET, ended)]],
  ["a refused CONNECT that its client resets", [head(1, STRANGER), reset(1), head(3, EXEC_HEAD)]],
  ["a CONNECT without a protocol", [head(1, { ":method": "CONNECT", ":authority": "a:1" })]],
  [
    "a CONNECT whose client sends no WebSocket",
    [
      head(1, EXEC_HEAD),
      frameOf(FRAME.data, 0, 1, Buffer.from([0xc2, 0x80, 0, 0, 0, 0])),
      frameOf(FRAME.data, FLAG.endStream, 1),
    ],
  ],
  [
    "a CONNECT for an unknown pod",
    [head(1, { ...EXEC_HEAD, ":path": EXEC_PATH.replace("/web/", "/none/") })],
  ],
];

let gateway: AccessGateway;

beforeAll(async () => {
  gateway = await AccessGateway.start((folder) => {
    writeFileSync(path.join(folder, "tokens.csv"), "t,ann,1\n");
    const waits = { idle: "1s", streamIdle: "300ms", lingerIdle: "300ms", lingerMax: "1s" };
    return {
      timeouts: { ...waits, shutdownGracePeriod: "0s" },
      authentication: { tokenAuthFile: "tokens.csv" },
      authorization: { mode: ["AlwaysAllow"] },
    };
  });
  return () => gateway.stop();
});

const portOf = ({ authority }: AccessGateway): number => Number(authority.split(":")[1]);

describe("no stream is reset while nghttp2 reads", () => {
  it.each(READS)("%s", async (_what, frames) => {
    const resets = await watchResets();
    const client = await openFrameClient(portOf(gateway), true);
    client.socket.write(Buffer.concat(frames));
    await eventually("the end of its streams", () => hasEnded(client));
    expect(resets).toEqual([]);
  });
});

/** Nothing is left to be said of the connection: it closed, or each of its streams has ended. */
function hasEnded(client: FrameClient): boolean {
  return client.isOver || client.endsOf(1).length > 0;
}

it("a client's GOAWAY is answered with one, and requests behind it are refused", async () => {
  const client = await openFrameClient(portOf(gateway), true);
  client.socket.write(Buffer.concat([head(1, EXEC_HEAD), goAway, head(3, EXEC_HEAD)]));
  await eventually("the end of the connection", () => client.isOver);
  const said = client.frames.filter(({ type }) => type === FRAME.goAway);
  expect(new Set(said.map(({ payload }) => payload.readUInt32BE(0)))).toEqual(new Set([1]));
  expect(client.has(FRAME.headers, 1)).toBe(true);
  expect(client.has(FRAME.headers, 3)).toBe(false);
});

const data = (flags = 0): Buffer => frameOf(FRAME.data, flags, 1, Buffer.from("input"));
/** What is behind a request's head in the same read. */
const REST: readonly (readonly [string, readonly Buffer[]])[] = [
  ["DATA", [data(), data()]],
  ["DATA and END_STREAM", [data(), data(FLAG.endStream)]],
  ["trailers", [data(), head(1, { a: "b" }, ended)]],
  ["a reset", [data(), reset(1)]],
  ["a reset, a GOAWAY and a request", [reset(1), goAway, head(3, GET, ended)]],
  ["a GOAWAY with an error", [data(), frameOf(FRAME.goAway, 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]))]],
];

describe.each([
  ["cancelled", cancelStream, 8],
  ["broken", breakStream, 2],
] as const)("a stream that is %s at once", (_end, end, code) => {
  it.each(REST)("closes with %s behind its head", async (_what, frames) => {
    const resets = await watchResets();
    const closed: number[] = [];
    const onRequest = ({ stream }: Http2Request): void => {
      stream.on("close", () => closed.push(stream.id ?? 0));
      end(stream);
      expect(stream.destroyed).toBe(true);
    };
    const handlers = { onRequest, onConnect: () => {} };
    const connections = new Http2Connections(defaultLimits, handlers, { takingMs: 5_000, headMs: 5_000 });
    const server = createServer((socket) => connections.accept(socket)).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const client = await openFrameClient((server.address() as AddressInfo).port);
    client.socket.write(Buffer.concat([head(1, { ...GET, ":method": "POST" }), ...frames]));
    await eventually("its end", () => closed.includes(1) && (client.isOver || client.frames.length > 1));
    client.send(FRAME.ping, 0, 0, Buffer.alloc(8));
    await eventually("PING", () => client.isOver || client.has(FRAME.ping, 0));
    const said = client.endsOf(1);
    expect(said.length === 0 || said.every((text) => text === `RST_STREAM ${code}`)).toBe(true);
    expect(resets).toEqual([]);
  });
});
