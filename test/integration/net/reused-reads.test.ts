import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { ReusedReads, recycleChunks, releaseChunk } from "../../../packages/client/src/net/reused-reads.ts";
import { eventually } from "../../support/eventually.ts";

const servers: Server[] = [];
const readers: Socket[] = [];

afterEach(async () => {
  for (const reader of readers.splice(0)) reader.destroy();
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => void server.close(resolve))));
});

/** A socket with reused reads, and the peer that writes to it. */
async function pair(transport: "tcp" | "tls" = "tcp"): Promise<{ reader: Socket; writer: Socket }> {
  const server = createServer();
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const reads = new ReusedReads(transport);
  const reader = connect({
    port: (server.address() as AddressInfo).port,
    host: "127.0.0.1",
    onread: reads.options,
  });
  readers.push(reader);
  reads.attach(reader);
  const [writer] = (await accepted) as [Socket];
  return { reader, writer };
}

/** Sends numbered pieces one by one, each after the last has been read. */
async function exchange(
  { reader, writer }: { reader: Socket; writer: Socket },
  pieces: readonly Buffer[],
  onChunk: (chunk: Buffer) => void,
): Promise<void> {
  for (const piece of pieces) {
    let left = piece.byteLength;
    const read = new Promise<void>((resolve) => {
      reader.on("data", function take(chunk: Buffer) {
        onChunk(chunk);
        left -= chunk.byteLength;
        if (left > 0) return;
        reader.off("data", take);
        resolve();
      });
    });
    writer.write(piece);
    await read;
  }
}

const pieces = Array.from({ length: 200 }, (_, index) => Buffer.alloc(1 + ((index * 977) % 9_000), index));

describe("ReusedReads", () => {
  it("keeps chunks that nobody released", async () => {
    const kept: Buffer[] = [];
    await exchange(await pair(), pieces, (chunk) => void kept.push(chunk));
    expect(Buffer.concat(kept).equals(Buffer.concat(pieces))).toBe(true);
  });

  it("frees each chunk by itself: one that is held stays, however many are freed after it", async () => {
    const { reader, writer } = await pair();
    const held: [chunk: Buffer, copy: Buffer][] = [];
    let chunks = 0;
    await exchange({ reader, writer }, pieces, (chunk) => {
      if (chunks++ % 7 === 0) held.push([chunk, Buffer.from(chunk)]);
      else releaseChunk(reader);
    });
    expect(held.length).toBeGreaterThan(20);
    expect(held.filter(([chunk, copy]) => !chunk.equals(copy))).toEqual([]);
  });

  it("takes new memory where the rest that a held chunk leaves is too small for what comes", async () => {
    const { reader, writer } = await pair();
    const sizes: number[] = [];
    const take = (chunk: Buffer): void => {
      // The first is held for ever.
      if (sizes.push(chunk.byteLength) > 1) releaseChunk(reader);
    };
    await exchange({ reader, writer }, [Buffer.alloc(50 * 1024)], take);
    await exchange(
      { reader, writer },
      Array.from({ length: 8 }, () => Buffer.alloc(256 * 1024)),
      take,
    );
    expect(Math.max(...sizes)).toBe(64 * 1024);
  });

  it("overwrites what is freed as soon as its event is over, where memory is poisoned", async () => {
    const { reader, writer } = await pair();
    const large = Array.from({ length: 4 }, () => Buffer.alloc(64 * 1024));
    await exchange({ reader, writer }, large, () => releaseChunk(reader));
    const chunks: Buffer[] = [];
    const held = Buffer.alloc(500, "held");
    const freed = Buffer.alloc(500, "freed");
    await exchange({ reader, writer }, [held, freed], (chunk) => {
      chunks.push(chunk);
      if (chunks.length === 2) releaseChunk(reader);
      expect(chunk.equals(chunks.length === 1 ? held : freed)).toBe(true);
    });
    await eventually("the event is over", () => chunks[1]?.includes("FREED MEMORY") === true);
    expect(chunks[1]?.includes("freed")).toBe(false);
    expect(chunks[0]?.equals(held)).toBe(true);
    recycleChunks(reader);
    expect(chunks[0]?.includes("held")).toBe(false);
  });

  it("reads nothing more into memory that a listener failed on", () => {
    const reads = new ReusedReads("tcp");
    const socket = new Socket();
    reads.attach(socket);
    socket.on("data", () => {
      throw new Error("a fault");
    });
    const memory = reads.options.buffer();
    expect(() => reads.options.callback(3, memory)).toThrow("a fault");
    expect(socket.destroyed).toBe(true);
  });

  it("puts small chunks that are kept into shared memory", async () => {
    const memories = new Set<ArrayBufferLike>();
    const small = Array.from({ length: 60 }, () => Buffer.alloc(3_000, 1));
    await exchange(await pair(), small, (chunk) => void memories.add(chunk.buffer));
    const heldBytes = [...memories].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(heldBytes).toBeLessThan(2 * 180_000);
    expect(memories.size).toBeLessThan(small.length / 2);
  });

  it("reads into the same memory when every chunk is released, and shrinks after a bulk transfer", async () => {
    const sockets = await pair();
    const sizes: number[] = [];
    const copies: Buffer[] = [];
    const take = (chunk: Buffer): void => {
      sizes.push(chunk.buffer.byteLength);
      copies.push(Buffer.from(chunk));
      releaseChunk(sockets.reader);
    };
    await exchange(sockets, pieces, take);
    await exchange(
      sockets,
      Array.from({ length: 40 }, () => Buffer.of(7)),
      take,
    );
    expect(Buffer.concat(copies).subarray(0, Buffer.concat(pieces).byteLength)).toEqual(
      Buffer.concat(pieces),
    );
    expect(Math.max(...sizes)).toBe(64 * 1024);
    expect(sizes.at(-1)).toBe(1024);
  });

  it("lets others read into memory of kept chunks when these are recycled, and not before", async () => {
    const large = Array.from({ length: 20 }, (_, index) => Buffer.alloc(64 * 1024, index));
    const keeping = await pair("tls");
    const kept: Buffer[] = [];
    await exchange(keeping, large, (chunk) => void kept.push(chunk));
    const memories = new Set(kept.map(({ buffer }) => buffer));

    const other = await pair("tls");
    const seen = new Set<ArrayBufferLike>();
    const take = (chunk: Buffer): void => void seen.add(chunk.buffer);
    await exchange(other, large, take);
    expect([...seen].filter((memory) => memories.has(memory as ArrayBuffer))).toEqual([]);
    expect(Buffer.concat(kept).equals(Buffer.concat(large))).toBe(true);

    recycleChunks(keeping.reader);
    await exchange(other, large, take);
    const taken = [...seen].filter((memory) => memories.has(memory as ArrayBuffer));
    expect(taken.length).toBeGreaterThan(0);
    // No more of one socket are remembered.
    expect(taken.length).toBeLessThanOrEqual(8);
  });

  it("gathers reads of bulk from TLS until the turn ends or the memory is full, and delivers others at once", async () => {
    const { reads, socket } = fakeReader("tls");
    const chunks: string[] = [];
    socket.on("data", (chunk: Buffer) => void chunks.push(chunk.toString("latin1")));
    fill(reads, "a".repeat(10));
    expect(chunks.splice(0)).toEqual(["a".repeat(10)]);
    fill(reads, "b".repeat(1024));
    expect(chunks.splice(0).join("")).toBe("b".repeat(1024));
    fill(reads, "c".repeat(4));
    fill(reads, "d".repeat(2_000));
    expect(chunks).toEqual([]);
    await eventually("the turn is over", () => chunks.length > 0);
    expect(chunks.splice(0).join("")).toBe("c".repeat(4) + "d".repeat(2_000));
    fill(reads, "e".repeat(100));
    fill(reads, "f".repeat(20_000));
    expect(chunks.join("")).toMatch(/^e{100}f+$/);
  });

  it.each(["end", "error"])("delivers what it gathered before an %s", async (event) => {
    const { reads, socket } = fakeReader("tls");
    const seen: string[] = [];
    socket.on("data", (chunk: Buffer) => void seen.push(`${chunk.byteLength}`));
    socket.on(event, () => void seen.push(event));
    fill(reads, "a".repeat(1024));
    fill(reads, "b".repeat(5));
    if (event === "end") socket.push(null);
    else socket.destroy(new Error("ECONNRESET"));
    await eventually("it is over", () => seen.includes(event));
    expect(seen).toEqual(["1024", "5", event]);
  });

  it("delivers nothing more to a reader that destroyed its socket", async () => {
    const { reads, socket } = fakeReader("tls");
    const sizes: number[] = [];
    socket.on("data", (chunk: Buffer) => void sizes.push(chunk.byteLength));
    fill(reads, "a".repeat(1024));
    fill(reads, "b".repeat(5));
    socket.destroy();
    await once(socket, "close");
    await new Promise(setImmediate);
    expect(sizes).toEqual([1024]);
  });
});

/** A socket whose reads are given by `fill`, as Node's handle of TLS gives records. */
function fakeReader(transport: "tcp" | "tls"): { reads: ReusedReads; socket: Socket } {
  const reads = new ReusedReads(transport);
  const socket = new Socket();
  readers.push(socket);
  reads.attach(socket);
  return { reads, socket };
}

const nextMemory = new WeakMap<ReusedReads, Uint8Array>();

function fill(reads: ReusedReads, text: string): void {
  for (let rest = Buffer.from(text, "latin1"); rest.byteLength > 0; ) {
    const memory = nextMemory.get(reads) ?? reads.options.buffer();
    const length = rest.copy(memory);
    reads.options.callback(length, memory);
    nextMemory.set(reads, reads.options.buffer());
    rest = rest.subarray(length);
  }
}
