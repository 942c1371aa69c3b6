import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { Duplex } from "node:stream";
import { expect, it } from "vitest";
import { ReusedReads } from "../../../packages/client/src/net/reused-reads.ts";
import { feed } from "../../../src/net/feed.ts";
import { eventually } from "../../support/eventually.ts";

const KIB = 1024;
const SESSIONS = 6;
const PIECES = 100;
const TURNS_A_CHUNK = 4;
const PIECE_BYTES = 32 * KIB;

const pieceOf = (session: number, index: number): Buffer => Buffer.alloc(PIECE_BYTES, `${session}/${index} `);

/** Takes one chunk every few turns and looks at it only then, as a socket whose peer is slow: whatever happened to its memory meanwhile shows. */
function slowSink(): { sink: Duplex; taken: Buffer[] } {
  const taken: Buffer[] = [];
  const sink = new Duplex({
    read() {},
    writableHighWaterMark: 64 * KIB,
    write(chunk: Buffer, _encoding, done) {
      let turns = TURNS_A_CHUNK;
      const wait = (): void => {
        if (turns-- > 0) {
          setImmediate(wait);
          return;
        }
        taken.push(Buffer.from(chunk));
        done();
      };
      wait();
    },
  });
  return { sink, taken };
}

it("brings each session its own bytes, however slow their sinks are, while all read into each other's former memory", async () => {
  const server = createServer((socket) => {
    socket.once("data", async (named) => {
      const session = Number(named.toString());
      for (let index = 0; index < PIECES; index++)
        if (!socket.write(pieceOf(session, index))) await once(socket, "drain");
      socket.end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  const carried = await Promise.all(
    Array.from({ length: SESSIONS }, async (_, session) => {
      const reads = new ReusedReads("tls");
      const source = connect({ port, host: "127.0.0.1", onread: reads.options });
      reads.attach(source);
      const { sink, taken } = slowSink();
      feed(source, sink, (chunk) => sink.write(chunk));
      source.once("end", () => sink.end());
      source.write(String(session));
      await once(sink, "finish");
      return Buffer.concat(taken);
    }),
  );
  server.close();

  for (const [session, bytes] of carried.entries()) {
    const expected = Buffer.concat(Array.from({ length: PIECES }, (_, index) => pieceOf(session, index)));
    expect(bytes.equals(expected)).toBe(true);
  }
});

it("frees nothing that a sink held when it was destroyed: it may be on its way with others' bytes", async () => {
  const server = createServer((socket) => {
    socket.on("data", () => {
      for (let index = 0; index < 20; index++) socket.write(pieceOf(1, index));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const reads = new ReusedReads("tls");
  const source = connect({ port, host: "127.0.0.1", onread: reads.options });
  reads.attach(source);
  const given: [chunk: Buffer, copy: Buffer][] = [];
  const sink = new Duplex({
    read() {},
    writableHighWaterMark: 1024 * KIB,
    write: (chunk: Buffer) => void given.push([chunk, Buffer.from(chunk)]),
  });
  let bytes = 0;
  feed(source, sink, (chunk) => {
    bytes += chunk.byteLength;
    if (!sink.destroyed) sink.write(chunk);
  });
  source.write("go");
  await eventually("the first bytes are given", () => bytes >= 20 * PIECE_BYTES);
  sink.destroy();
  source.write("go on");
  await eventually("more has come", () => bytes >= 40 * PIECE_BYTES);
  source.destroy();
  server.close();
  expect(given.length).toBeGreaterThan(0);
  expect(given.filter(([chunk, copy]) => !chunk.equals(copy))).toEqual([]);
});
