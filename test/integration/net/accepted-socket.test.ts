import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { type Duplex, PassThrough } from "node:stream";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { releaseChunk } from "../../../packages/client/src/net/reused-reads.ts";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import type { UpgradedConnection } from "../../../packages/client/src/net/upgraded-connection.ts";
import { withReusedReads } from "../../../src/net/accepted-socket.ts";
import { feed } from "../../../src/net/feed.ts";

const UPGRADE = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";

type AcceptedConnection = UpgradedConnection & { readonly socket: Socket };

let server: Server | undefined;
const sockets: Duplex[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  server = undefined;
});

const transports = ["TCP", "TLS"] as const;
type Transport = (typeof transports)[number];
let certificate: Promise<{ certPem: string; keyPem: string }> | undefined;

/** A client, and the accepted side of its upgrade as the gateway has it: paused, with what came early. */
async function upgraded(
  transport: Transport,
  early = "",
): Promise<{ client: Socket; accepted: AcceptedConnection }> {
  certificate ??= createSelfSignedCertificate();
  const { certPem: cert, keyPem: key } = await certificate;
  server = transport === "TCP" ? createServer() : createHttpsServer({ cert, key });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const upgrade = once(server, "upgrade");
  const { port } = server.address() as AddressInfo;
  const options = { port, host: "127.0.0.1", allowHalfOpen: true };
  const secure = { ...options, rejectUnauthorized: false };
  const client = transport === "TCP" ? connect(options) : connectTls(secure);
  sockets.push(client);
  client.write(UPGRADE + early);
  const [, socket, head] = (await upgrade) as [unknown, Socket, Buffer];
  socket.allowHalfOpen = true;
  socket.pause();
  sockets.push(socket);
  return { client, accepted: { socket, head } };
}

describe.each(transports)("an accepted socket over %s that reads into reused memory", (transport) => {
  it("carries every byte both ways under backpressure", async () => {
    const { client, accepted } = await upgraded(transport);
    const leg = withReusedReads(accepted);
    feed(leg.socket, leg.socket, (chunk) => leg.socket.write(chunk));

    const sent = Buffer.alloc(8 * 1024 * 1024);
    for (let at = 0; at < sent.byteLength; at++) sent[at] = at * 31 + (at >> 12);
    const echoed: Buffer[] = [];
    leg.socket.once("end", () => leg.socket.end());
    client.end(sent);
    // Nothing is read for a while, so that both directions fill up.
    await expect.poll(() => leg.socket.writableNeedDrain).toBe(true);
    client.on("data", (chunk: Buffer) => void echoed.push(chunk));
    await once(client, "end");
    expect(Buffer.concat(echoed).equals(sent)).toBe(true);
  });

  it("reads into the same memory again, and keeps what is not released", async () => {
    const { client, accepted } = await upgraded(transport);
    const { socket } = withReusedReads(accepted);
    const memories = new Set<ArrayBufferLike>();
    for (let count = 0; count < 100; count++) {
      const piece = Buffer.alloc(500, count);
      const isSame = new Promise<boolean>((resolve) => {
        socket.once("data", (chunk: Buffer) => {
          memories.add(chunk.buffer);
          resolve(chunk.equals(piece));
          releaseChunk(socket);
        });
      });
      socket.resume();
      client.write(piece);
      expect(await isSame).toBe(true);
    }
    // A memory that a read fills is replaced by a larger one.
    expect(memories.size).toBeLessThanOrEqual(3);

    const kept: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => void kept.push(chunk));
    const sent = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) & 255));
    client.end(sent);
    await once(socket, "end");
    expect(Buffer.concat(kept).equals(sent)).toBe(true);
  });

  it("hands over what came early", async () => {
    const { client, accepted } = await upgraded(transport, "first ");
    client.write("second");
    const bytes: Buffer[] = [];
    // The rest is in Node's buffer before the hand-over: a paused socket still takes one read.
    await expect
      .poll(() => accepted.socket.readableLength + accepted.head.byteLength)
      .toBe("first second".length);
    const leg = withReusedReads(accepted);
    bytes.push(Buffer.from(leg.head));
    leg.socket.on("data", (chunk: Buffer) => void bytes.push(Buffer.from(chunk)));
    leg.socket.resume();
    client.end(" third");
    await once(leg.socket, "end");
    expect(Buffer.concat(bytes).toString()).toBe("first second third");
  });

  it("keeps in order what comes before anybody listens", async () => {
    const { client, accepted } = await upgraded(transport);
    const { socket } = withReusedReads(accepted);
    // Reading without a listener: what a record brings that arrives with the one that started the session.
    socket.read(0);
    client.write("first ");
    await expect.poll(() => socket.readableLength).toBe("first ".length);
    client.end("second");
    const bytes: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => void bytes.push(Buffer.from(chunk)));
    socket.resume();
    await once(socket, "end");
    expect(Buffer.concat(bytes).toString()).toBe("first second");
  });

  it("sees the end of a client that ended while nobody read", async () => {
    const { client, accepted } = await upgraded(transport);
    client.end("last");
    await expect.poll(() => accepted.socket.readableLength).toBe("last".length);
    const { socket, head } = withReusedReads(accepted);
    expect(String(head)).toBe("last");
    socket.on("data", () => {});
    socket.resume();
    await once(socket, "end");
    socket.end("answer");
    const [answer] = await once(client, "data");
    expect(String(answer)).toBe("answer");
  });

  it("leaves sockets that are destroyed or have ended alone", async () => {
    const { client, accepted } = await upgraded(transport);
    client.end();
    accepted.socket.resume();
    await once(accepted.socket, "end");
    expect(withReusedReads(accepted)).toBe(accepted);
    accepted.socket.destroy();
    expect(withReusedReads(accepted)).toBe(accepted);
  });
});

it("leaves a stream that is no socket alone", () => {
  const leg = { socket: new PassThrough(), head: Buffer.alloc(0) };
  expect(withReusedReads(leg)).toBe(leg);
});
