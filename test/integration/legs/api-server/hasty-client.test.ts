import type { Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { acceptValueOf } from "../../../../packages/client/src/http/upgrade/websocket-request.ts";
import { FrameEncoder } from "../../../../protocols/spdy/index.ts";
import { encodeClose } from "../../../../protocols/websocket/index.ts";
import { eventually } from "../../../support/eventually.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { afterHead, listenRaw, type RawUpstream } from "../../../support/http/loopback.ts";
import { websocketOnly } from "../../../support/websocket-only.ts";

const ROUNDS = 20;
const SUCCESS = '{"metadata":{},"status":"Success"}';
const STATUS_FRAME = Buffer.concat([Buffer.of(0x82, SUCCESS.length + 1, 3), Buffer.from(SUCCESS)]);
const CLOSE_FRAME = encodeClose(1000, "");

/** On a thread of its own, as a client's kernel is: it resets while the gateway still writes. */
const CLIENT = `
  const { workerData } = require("node:worker_threads");
  const { connect } = require("node:net");
  let left = workerData.rounds;
  const round = () => {
    if (left-- === 0) return;
    let seen = "";
    const socket = connect(workerData.port, "127.0.0.1", () => socket.write(workerData.head));
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      seen += chunk.toString("latin1");
      if (seen.includes('"Success"}')) socket.resetAndDestroy();
    });
    socket.on("close", round);
  };
  round();
`;

let gateway: GatewayHarness | undefined;
let raw: RawUpstream | undefined;
let worker: Worker | undefined;
afterEach(async () => {
  await worker?.terminate();
  await gateway?.close();
  await raw?.close();
  gateway = raw = worker = undefined;
});

const webSocketHead = (protocol: string): string[] => [
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  `Sec-WebSocket-Protocol: ${protocol}`,
];

type NodeScript = (socket: Socket, round: number, head: string) => void;

function webSocketNode(protocol: string): NodeScript {
  return (socket, round, head) => {
    const key = /sec-websocket-key: (\S+)/i.exec(head)?.[1] ?? "";
    socket.write(
      answer([
        "Upgrade: websocket",
        `Sec-WebSocket-Accept: ${acceptValueOf(key)}`,
        `Sec-WebSocket-Protocol: ${protocol}`,
      ]),
    );
    finish(socket, round, STATUS_FRAME, CLOSE_FRAME);
  };
}

function spdyNode(socket: Socket, round: number): void {
  socket.write(answer(["Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"]));
  socket.once("data", () => {
    const encoder = new FrameEncoder();
    for (const streamId of [1, 3])
      socket.write(encoder.encode({ type: "SYN_REPLY", streamId, fin: false, headers: new Map() }));
    const status = Buffer.concat([Buffer.of(0, 0, 0, 1, 0, 0, 0, SUCCESS.length), Buffer.from(SUCCESS)]);
    finish(
      socket,
      round,
      status,
      new FrameEncoder().encode({ type: "GOAWAY", lastGoodStreamId: 0, status: 0 }),
    );
  });
}

/** The farewell comes with the result, behind it, or a turn later, and the end of the connection likewise. */
function finish(socket: Socket, round: number, status: Uint8Array, farewell: Uint8Array): void {
  if (round % 3 === 0) {
    socket.end(Buffer.concat([status, farewell]));
    return;
  }
  socket.write(status);
  const leave = (): void => {
    if (socket.writable) socket.end(farewell);
  };
  if (round % 3 === 1) leave();
  else setImmediate(leave);
}

const answer = (lines: readonly string[]): string =>
  ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", ...lines, "", ""].join("\r\n");

describe("a client that resets as soon as it has read its result", () => {
  it.each([
    {
      path: "v5 passed through",
      client: webSocketHead("v5.channel.k8s.io"),
      node: webSocketNode("v5.channel.k8s.io"),
      declaredFeatures: ["ExtendWebSocketsToKubelet"],
    },
    {
      path: "v4 passed through",
      client: webSocketHead("v4.channel.k8s.io"),
      node: webSocketNode("v4.channel.k8s.io"),
    },
    { path: "v5 translated", client: webSocketHead("v5.channel.k8s.io"), node: spdyNode },
    {
      path: "v4 bridged to v5",
      client: webSocketHead("v4.channel.k8s.io"),
      node: webSocketNode("v5.channel.k8s.io"),
      streaming: websocketOnly,
    },
  ])("has completed, $path, each time", async ({ client, node, declaredFeatures = [], ...upstream }) => {
    let rounds = 0;
    raw = await listenRaw((socket) => {
      socket.on("error", () => {});
      afterHead(socket, (head) => node(socket, rounds++, head.toString("latin1")));
    });
    gateway = await startGatewayHarness({
      kubeletPort: raw.port,
      declaredFeatures,
      timeouts: { lingerIdleMs: 10_000 },
      ...upstream,
    });
    const { port } = new URL(`http://${gateway.authority}`);
    const target = "/api/v1/namespaces/default/pods/web/exec?stdout=true&command=x";
    const head = [`GET ${target} HTTP/1.1`, "Host: x", "Connection: Upgrade", ...client, "", ""].join("\r\n");
    worker = new Worker(CLIENT, { eval: true, workerData: { rounds: ROUNDS, port: Number(port), head } });
    const ends = (): string[] => (gateway?.logLines ?? []).filter((line) => line.includes('"session ended"'));
    await eventually("all sessions have ended", () => ends().length === ROUNDS);
    expect(ends().map((line) => JSON.parse(line).cause)).toEqual(Array(ROUNDS).fill("completed"));
  });
});
