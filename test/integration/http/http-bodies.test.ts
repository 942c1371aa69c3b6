import { createHash, randomBytes } from "node:crypto";
import { createServer, request } from "node:http";
import type { Socket } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import {
  closeServer,
  listen,
  listenRaw,
  openClient,
  openSocketCount,
  until,
} from "../../support/http/loopback.ts";
import { type Forwarder, startForwarder } from "./http-pair.ts";

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  await until(() => openSocketCount() === 0, "all sockets closed");
});

const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Asks over a connection of its own; the body goes with a length or in chunks. */
function ask(
  port: number,
  path: string,
  body?: { bytes: Buffer; isChunked: boolean },
): Promise<{ digest: string; trailers: NodeJS.Dict<string> }> {
  return new Promise((resolve, reject) => {
    const headers = body !== undefined && !body.isChunked ? { "content-length": body.bytes.length } : {};
    const method = body === undefined ? "GET" : "PUT";
    const asked = request({ port, path, method, headers, agent: false }, (response) => {
      const digest = createHash("sha256");
      response.on("data", (chunk) => digest.update(chunk));
      response.on("end", () => resolve({ digest: digest.digest("hex"), trailers: response.trailers }));
      response.on("error", reject);
    });
    asked.on("error", reject);
    // In two parts, so that Node can not know the length.
    if (body?.isChunked) asked.write(body.bytes.subarray(0, 1));
    asked.end(body?.isChunked ? body.bytes.subarray(1) : body?.bytes);
  });
}

/** A backend that answers `/FRAMING/BYTES` with the beginning of `source`, and a PUT with its body's digest. */
async function start(source: Buffer): Promise<Forwarder> {
  const sockets = new Set<Socket>();
  const server = createServer((incoming, response) => {
    const [, framing, bytes] = (incoming.url ?? "").split("/");
    if (incoming.method === "PUT") {
      const digest = createHash("sha256");
      incoming.on("data", (chunk) => digest.update(chunk));
      incoming.on("end", () => response.end(digest.digest()));
      return;
    }
    const body = source.subarray(0, Number(bytes));
    if (framing === "length") response.writeHead(200, { "Content-Length": body.length });
    if (framing === "chunked") response.writeHead(200, { Trailer: "X-Sum" });
    if (framing === "close") response.useChunkedEncodingByDefault = false;
    for (let at = 0; at < body.length; at += 40_000) response.write(body.subarray(at, at + 40_000));
    if (framing === "chunked") response.addTrailers({ "X-Sum": digestOf(body) });
    response.end();
  });
  server.on("connection", (socket) => sockets.add(socket));
  const forwarder = await startForwarder(await listen(server));
  cleanups.push(forwarder.close, () => closeServer(server, sockets));
  return forwarder;
}

describe("forwardExchange: bodies arrive as they were sent", () => {
  const source = randomBytes(1024 * 1024);
  // Around the sizes where something changes: text or bytes, one read or many, the marks of buffers.
  const sizes = fc.oneof(
    fc.constantFrom(0, 1, 8191, 8192, 8193, 16_384, 65_535, 65_536, 65_537, source.length),
    fc.nat(source.length),
  );

  it("downloads, for each framing, many at once", async () => {
    const forwarder = await start(source);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom("length", "chunked", "close"), sizes), {
          minLength: 1,
          maxLength: 8,
        }),
        async (asked) => {
          const answers = await Promise.all(
            asked.map(([framing, bytes]) => ask(forwarder.port, `/${framing}/${bytes}`)),
          );
          for (const [index, { digest, trailers }] of answers.entries()) {
            const [framing, bytes] = asked[index] as [string, number];
            const expected = digestOf(source.subarray(0, bytes));
            expect(digest).toBe(expected);
            expect(trailers["x-sum"]).toBe(framing === "chunked" ? expected : undefined);
          }
        },
      ),
      { numRuns: 20 },
    );
    expect(forwarder.errors).toEqual([]);
  });

  it("uploads, with a length and in chunks", async () => {
    const forwarder = await start(source);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.boolean(), sizes), { minLength: 1, maxLength: 6 }),
        async (asked) => {
          const answers = await Promise.all(
            asked.map(([isChunked, bytes]) =>
              ask(forwarder.port, "/", { bytes: source.subarray(0, bytes), isChunked }),
            ),
          );
          for (const [index, { digest }] of answers.entries()) {
            const bytes = source.subarray(0, asked[index]?.[1]);
            expect(digest).toBe(digestOf(Buffer.from(digestOf(bytes), "hex")));
          }
        },
      ),
      { numRuns: 15 },
    );
  });

  it("keeps what a slow client has not taken out of the memory that the next read uses", async () => {
    const body = randomBytes(24 * 1024 * 1024);
    let written = 0;
    // Small pieces, one a turn: some of them wait when the client's buffers are full, and reading goes on.
    const writeOn = (socket: Socket): void => {
      if (written === body.length || socket.destroyed) return;
      const piece = body.subarray(written, written + 3000);
      written += piece.length;
      if (socket.write(piece)) setImmediate(writeOn, socket);
      else socket.once("drain", () => writeOn(socket));
    };
    const node = await listenRaw((socket) => {
      socket.once("data", () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`);
        writeOn(socket);
      });
    });
    const forwarder = await startForwarder(node.port);
    cleanups.push(forwarder.close, node.close);
    const client = await openClient(forwarder.port);
    client.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    await until(() => node.sockets[0]?.writableNeedDrain === true, "everything on the way is full");
    const received: Buffer[] = [];
    let bytes = 0;
    client.on("data", (chunk: Buffer) => {
      received.push(chunk);
      bytes += chunk.length;
    });
    await until(() => bytes > body.length, "all of it");
    client.destroy();
    const text = Buffer.concat(received);
    expect(digestOf(text.subarray(text.indexOf("\r\n\r\n") + 4))).toBe(digestOf(body));
  });
});
