import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { PassThrough } from "node:stream";
import { connect, createServer, type Server, type TLSSocket } from "node:tls";
import { afterEach, describe, expect, it, vi } from "vitest";
import { gatherWrites, unsentBytesOf } from "../../../packages/client/src/net/gathered-writes.ts";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import { untilStill } from "../../support/still.ts";

const KIB = 1024;

let server: Server | undefined;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
});

/** An accepted TLS socket whose writes are gathered, and the peer that it writes to. */
async function pair(): Promise<{ socket: TLSSocket; peer: TLSSocket }> {
  const { certPem: cert, keyPem: key } = await createSelfSignedCertificate();
  server = createServer({ cert, key, allowHalfOpen: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "secureConnection");
  const { port } = server.address() as AddressInfo;
  const options = { port, host: "127.0.0.1", rejectUnauthorized: false, allowHalfOpen: true };
  const peer = connect(options);
  const [socket] = (await accepted) as [TLSSocket];
  for (const end of [socket, peer]) end.on("error", () => {});
  sockets.push(socket, peer);
  gatherWrites(socket);
  gatherWrites(socket);
  return { socket, peer };
}

async function readToEnd(peer: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  peer.on("data", (chunk: Buffer) => void chunks.push(chunk));
  await once(peer, "end");
  return Buffer.concat(chunks);
}

const table = Buffer.from(Array.from({ length: 512 * KIB }, (_, index) => (index * 31 + (index >> 8)) & 255));
/** Bytes that differ from place to place. */
const bytesOf = (length: number, seed: number): Buffer =>
  Buffer.from(table.subarray(seed % 256, (seed % 256) + length));

describe("gathered writes of a TLS socket", () => {
  it("deliver every byte in order, of whatever size, corked or not, as text or bytes, and end after them", async () => {
    const { socket, peer } = await pair();
    const received = readToEnd(peer);
    const sent: Buffer[] = [];
    for (let round = 0; round < 300; round++) {
      const parts = [
        bytesOf(1 + (round % 7), round),
        bytesOf((round * 977) % 40_000, round),
        bytesOf((round % 50) * 4_000, 1),
      ];
      if (round % 3 > 0) socket.cork();
      for (const part of parts) socket.write(part);
      socket.write(`text ${round} \u00e9`, "latin1");
      if (round % 3 > 0) socket.uncork();
      sent.push(...parts, Buffer.from(`text ${round} \u00e9`, "latin1"));
      if (round % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    socket.end(bytesOf(200_000, 5));
    sent.push(bytesOf(200_000, 5));
    expect((await received).equals(Buffer.concat(sent))).toBe(true);
    expect(unsentBytesOf(socket)).toBe(0);
  });

  it("take no large memory for one small piece that leaves at once", async () => {
    const { socket, peer } = await pair();
    // A module of its own, so that no memory is spare.
    vi.resetModules();
    const fresh = await import("../../../packages/client/src/net/gathered-writes.ts");
    const taken = vi.spyOn(Buffer, "allocUnsafeSlow");
    fresh.gatherWrites(socket);
    const received = readToEnd(peer);
    socket.write(bytesOf(4 * KIB, 1));
    const large = taken.mock.calls.filter(([size]) => size > 4 * KIB);
    taken.mockRestore();
    socket.end();
    expect((await received).equals(bytesOf(4 * KIB, 1))).toBe(true);
    expect(large).toEqual([]);
  });

  it("are done when they are copied: the memory may be used again when write returns", async () => {
    const { socket, peer } = await pair();
    const received = readToEnd(peer);
    const memory = Buffer.alloc(16 * KIB);
    for (let round = 0; round < 3; round++) {
      memory.fill(round);
      socket.cork();
      socket.write(memory.subarray(0, 7));
      socket.write(memory);
      socket.uncork();
      expect(socket.writableLength).toBe(0);
    }
    memory.fill(99);
    socket.end();
    const expected = [0, 1, 2].map((round) => Buffer.alloc(16 * KIB + 7, round));
    expect((await received).equals(Buffer.concat(expected))).toBe(true);
  });

  it("are bounded while the peer does not read, say so, and go on when it does", async () => {
    const { socket, peer } = await pair();
    let writtenBytes = 0;
    const fill = (): void => {
      while (!socket.writableNeedDrain) {
        socket.write(bytesOf(16 * KIB, writtenBytes >> 14));
        writtenBytes += 16 * KIB;
      }
    };
    socket.on("drain", fill);
    fill();
    await untilStill("the queue", async () => writtenBytes, 256 * KIB);
    socket.off("drain", fill);
    // Two memories, the stream's high-water mark and the write that passed it.
    expect(unsentBytesOf(socket)).toBeLessThanOrEqual(128 * KIB + socket.writableHighWaterMark + 16 * KIB);
    expect(unsentBytesOf(socket)).toBeGreaterThan(64 * KIB);
    const drained = once(socket, "drain");
    const received = readToEnd(peer);
    await drained;
    socket.end();
    const bytes = await received;
    expect(bytes.byteLength).toBe(writtenBytes);
    for (let at = 0; at < writtenBytes; at += 16 * KIB) {
      expect(bytes.subarray(at, at + 16 * KIB).equals(bytesOf(16 * KIB, at >> 14))).toBe(true);
    }
  });

  it("end with the socket: one that is destroyed, or whose peer breaks, sends nothing more and leaves nothing behind", async () => {
    const { socket, peer } = await pair();
    socket.write(Buffer.alloc(1024 * KIB));
    const closed = once(socket, "close");
    socket.destroy();
    await closed;
    await once(peer.resume(), "end");

    const second = await pair();
    const broken = new Promise((resolve) => second.socket.once("close", resolve));
    second.peer.destroy();
    const write = (): void => {
      if (!second.socket.destroyed) second.socket.write(Buffer.alloc(64 * KIB), () => setImmediate(write));
    };
    write();
    await broken;
  });
});

it("leaves other streams alone", () => {
  const stream = new PassThrough();
  const { _write } = stream;
  gatherWrites(stream);
  expect(stream._write).toBe(_write);
  stream.write("abc");
  expect(unsentBytesOf(stream)).toBe(stream.writableLength);
});
