import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { acceptValueOf } from "../../../../packages/client/src/http/upgrade/websocket-request.ts";
import { CLOSE, encodeClose, WebSocketFrameDecoder } from "../../../../protocols/websocket/index.ts";
import { eventually } from "../../../support/eventually.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { afterHead, listenRaw } from "../../../support/http/loopback.ts";
import { endExec, ScriptedKubelet, SUCCESS } from "../../../support/scripted-kubelet.ts";
import { websocketOnly } from "../../../support/websocket-only.ts";

const UPLOADS = 20;
const MESSAGES = 12;
const MESSAGE_BYTES = 16_000;

/** Uploads on a thread of its own, without an end of input: it sends all, and Close, at once or in two writes. */
const CLIENT = `
  const { workerData } = require("node:worker_threads");
  const { connect } = require("node:net");
  const { uploads, messages, messageBytes, port, head } = workerData;
  const message = Buffer.alloc(8 + 1 + messageBytes, 0x55);
  message.set([0x82, 0xfe, (messageBytes + 1) >> 8, (messageBytes + 1) & 0xff, 0, 0, 0, 0, 0]);
  const input = Buffer.concat(Array(messages).fill(message));
  const close = Buffer.of(0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8);
  let round = 0;
  const upload = () => {
    if (round === uploads) return;
    const isAtOnce = round++ % 2 === 0;
    const socket = connect(port, "127.0.0.1", () => socket.write(head));
    socket.on("error", () => {});
    socket.once("data", () => {
      if (isAtOnce) socket.end(Buffer.concat([input, close]));
      else {
        socket.write(input);
        setImmediate(() => socket.end(close));
      }
      socket.resume();
    });
    socket.on("close", upload);
  };
  upload();
`;

interface Upload {
  bytes: number;
  hasEnd: boolean;
}

let gateway: GatewayHarness | undefined;
let node: { close(): Promise<void> } | undefined;
let worker: Worker | undefined;
afterEach(async () => {
  await worker?.terminate();
  await gateway?.close();
  await node?.close();
  gateway = node = worker = undefined;
});

/** Reads stdin to its end as kubelets do: up to the Close, or the CLOSE of v5, which comes before it. */
async function webSocketNode(protocol: string, uploads: Upload[]): Promise<number> {
  const raw = await listenRaw((socket) => {
    const upload: Upload = { bytes: 0, hasEnd: false };
    uploads.push(upload);
    let channel = -1;
    const decoder = new WebSocketFrameDecoder("server", {
      onMessage: (part, isFirst) => {
        if (isFirst) channel = part[0] as number;
        if (channel === 0) upload.bytes += part.byteLength - (isFirst ? 1 : 0);
        if (channel === 255) upload.hasEnd = true;
      },
      onPing: () => {},
      onPong: () => {},
      onClose: () => {
        upload.hasEnd = true;
        if (socket.writable) socket.end(encodeClose(CLOSE.NORMAL, ""));
      },
    });
    afterHead(socket, (received) => {
      const end = received.indexOf("\r\n\r\n") + 4;
      const key = /sec-websocket-key: (\S+)/i.exec(received.toString("latin1"))?.[1] ?? "";
      const lines = ["Upgrade: websocket", `Sec-WebSocket-Accept: ${acceptValueOf(key)}`];
      const head = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", ...lines];
      socket.write([...head, `Sec-WebSocket-Protocol: ${protocol}`, "", ""].join("\r\n"));
      socket.write(Buffer.of(0x82, 1, 1));
      socket.on("data", (chunk: Buffer) => decoder.push(chunk));
      if (received.byteLength > end) decoder.push(received.subarray(end));
    });
  });
  node = raw;
  return raw.port;
}

async function spdyNode(uploads: Upload[]): Promise<number> {
  const kubelet = new ScriptedKubelet({
    onStream: (name) => name === "stdin" && uploads.push({ bytes: 0, hasEnd: false }),
    onData: (name, part, fin, session) => {
      const upload = uploads.at(-1);
      if (name !== "stdin" || upload === undefined) return;
      upload.bytes += part.byteLength;
      upload.hasEnd ||= fin;
      if (fin) endExec(session, SUCCESS);
    },
  });
  node = kubelet;
  return await kubelet.listen();
}

describe("an upload whose client sends it and closes, without an end of input", () => {
  it.each([
    { path: "v4 bridged to v5", client: "v4", node: "v5", options: { streaming: websocketOnly } },
    { path: "v5 translated to SPDY", client: "v5", node: "SPDY", options: {} },
    { path: "v4 passed through", client: "v4", node: "v4", options: {} },
    {
      path: "v5 passed through",
      client: "v5",
      node: "v5",
      options: { declaredFeatures: ["ExtendWebSocketsToKubelet"] },
    },
  ])("arrives whole and with its end, $path, each time", async ({ client, node, options }) => {
    const uploads: Upload[] = [];
    const kubeletPort =
      node === "SPDY" ? await spdyNode(uploads) : await webSocketNode(`${node}.channel.k8s.io`, uploads);
    gateway = await startGatewayHarness({ kubeletPort, timeouts: { lingerIdleMs: 10_000 }, ...options });
    const { port } = new URL(`http://${gateway.authority}`);
    const head = [
      "GET /api/v1/namespaces/default/pods/web/exec?stdin=true&stdout=true&command=x HTTP/1.1",
      "Host: x",
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      `Sec-WebSocket-Protocol: ${client}.channel.k8s.io`,
      "",
      "",
    ].join("\r\n");
    const workerData = {
      uploads: UPLOADS,
      messages: MESSAGES,
      messageBytes: MESSAGE_BYTES,
      port: Number(port),
      head,
    };
    worker = new Worker(CLIENT, { eval: true, workerData });
    const ended = (): Upload[] => uploads.filter(({ hasEnd }) => hasEnd);
    await eventually("all uploads have ended", () => ended().length === UPLOADS);
    expect(uploads).toEqual(Array(UPLOADS).fill({ bytes: MESSAGES * MESSAGE_BYTES, hasEnd: true }));
  });
});
