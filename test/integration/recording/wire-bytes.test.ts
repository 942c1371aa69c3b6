import { createHash } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { play } from "../../support/recording/played.ts";
import { RecordedGateway } from "../../support/recording/recorded-gateway.ts";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** Output in a message of two fragments with a ping between them, stderr, a Status, and the end. */
const FROM_NODE = Buffer.concat([
  Buffer.from([0x02, 0x04, 1, 0x6f, 0x6e, 0x65]),
  Buffer.from([0x89, 0x02, 0x70, 0x69]),
  Buffer.from([0x80, 0x05, 0x20, 0x74, 0x77, 0x6f, 0x0a]),
  Buffer.from([0x82, 0x04, 2, 0x65, 0x72, 0x72]),
  Buffer.concat([Buffer.from([0x82, 0x15, 3]), Buffer.from('{"status":"Success"}')]),
  Buffer.from([0x88, 0x02, 0x03, 0xe8]),
]);
/** A masked empty pong and a masked message of 3 bytes of stdin. */
const FROM_CLIENT = Buffer.concat([
  Buffer.from([0x8a, 0x80, 1, 2, 3, 4]),
  Buffer.from([0x82, 0x83, 9, 8, 7, 6, 9, 0x61 ^ 8, 0x0a ^ 7]),
]);

let gateway: RecordedGateway | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await gateway?.stop();
});

/** The bytes of all whole frames but pings and pongs, which the gateway sends by itself, too. */
function withoutPings(bytes: Buffer): Buffer {
  const kept: Buffer[] = [];
  for (let at = 0; at + 2 <= bytes.byteLength; ) {
    const [first = 0, second = 0] = bytes.subarray(at, at + 2);
    const length = 2 + ((second & 0x80) === 0 ? 0 : 4) + (second & 0x7f);
    const isPing = (first & 0x0f) === 9 || (first & 0x0f) === 10;
    if (at + length <= bytes.byteLength && !isPing) kept.push(bytes.subarray(at, at + length));
    at += length;
  }
  return Buffer.concat(kept);
}

/** What came after the head of a request or an answer. */
function bodyOf(socket: Socket): () => Buffer {
  const parts: Buffer[] = [];
  socket.on("data", (part) => parts.push(part));
  return () => {
    const all = Buffer.concat(parts);
    const end = all.indexOf("\r\n\r\n");
    return end === -1 ? Buffer.alloc(0) : all.subarray(end + 4);
  };
}

it("a recording changes no byte in either direction, however the bytes are cut", async () => {
  let received: (() => Buffer) | undefined;
  const node = createServer((socket) => {
    sockets.push(socket);
    received = bodyOf(socket);
    socket.on("error", () => {});
    socket.once("data", (head) => {
      const [, key = ""] = /Sec-WebSocket-Key: (\S+)/i.exec(head.toString()) ?? [];
      const accept = createHash("sha1")
        .update(key + GUID)
        .digest("base64");
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n`,
      );
      // One byte at a time.
      const send = (at: number): void => {
        if (at >= FROM_NODE.byteLength) return;
        socket.write(FROM_NODE.subarray(at, at + 1));
        setImmediate(send, at + 1);
      };
      const hasAll = () => withoutPings(received?.() ?? Buffer.alloc(0)).byteLength >= 9;
      void eventually("the client's bytes", hasAll).then(() => send(0));
    });
  }).listen(0, "127.0.0.1");
  await once(node, "listening");
  gateway = await RecordedGateway.start({ kubeletPort: (node.address() as AddressInfo).port });
  const [host, port] = gateway.authority.split(":");
  const client = connect(Number(port), host);
  sockets.push(client);
  const shown = bodyOf(client);
  client.write(
    `GET /api/v1/namespaces/default/pods/web/exec?stdin=true&stdout=true&stderr=true&command=x HTTP/1.1\r\nHost: ${gateway.authority}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n`,
  );
  await once(client, "data");
  for (const byte of FROM_CLIENT) client.write(Buffer.from([byte]));
  await eventually("all of it", () => withoutPings(shown()).byteLength >= withoutPings(FROM_NODE).byteLength);
  client.end();
  const recorded = play(await gateway.recording());
  expect(withoutPings(shown())).toEqual(withoutPings(FROM_NODE));
  expect(withoutPings(received?.() ?? Buffer.alloc(0)).subarray(0, 9)).toEqual(withoutPings(FROM_CLIENT));
  expect(recorded.header).toMatchObject({ sluice: { plan: "pass-through", protocol: "v4.channel.k8s.io" } });
  expect([recorded.stdout.toString(), recorded.stderr.toString(), recorded.of("x")]).toEqual([
    "one two\n",
    "err",
    ["0"],
  ]);
  node.close();
});
