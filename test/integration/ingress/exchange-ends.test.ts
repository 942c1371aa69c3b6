import { once } from "node:events";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { answering, listenRaw, until } from "../../support/http/loopback.ts";
import { ask, connectHttp2 } from "../../support/http2-client.ts";
import { frameOf, headerBlockOf } from "../../support/http2-frames.ts";

async function doorTo(port: number, service: { appProtocol?: string } = {}): Promise<FrontDoor> {
  const door = await FrontDoor.start([
    ...serviceObjects("app", [{ port }], service),
    ingressObject("all", { defaultBackend: backend("app") }),
  ]);
  onTestFinished(() => door.stop());
  return door;
}

async function http1Backend(): Promise<number> {
  const upstream = await listenRaw(answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  onTestFinished(() => upstream.close());
  return upstream.port;
}

async function h2cBackend(): Promise<number> {
  const server = createHttp2Server();
  server.on("stream", (stream) => {
    stream.resume();
    stream.on("end", () => {
      stream.respond({ ":status": 200 });
      stream.end("ok");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe("an HTTP/2 POST whose body turns out to be empty", () => {
  it.each([
    ["an HTTP/1.1", http1Backend, {}],
    ["an h2c", h2cBackend, { appProtocol: "kubernetes.io/h2c" }],
  ])("is answered by %s backend", async (_what, start, service) => {
    const door = await doorTo(await start(), service);
    const client = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
    onTestFinished(() => client.destroy());
    // HEADERS, and END_STREAM on an empty DATA frame behind it, before the backend can have been dialled.
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => ask(client, "/", { ":method": "POST", ":authority": "a" }, "")),
    );
    expect(answers.map(({ status, body }) => [status, body])).toEqual(Array(5).fill([200, "ok"]));
  });
});

const SETTINGS = 4;
const HEADERS = 1;
const END_OF_HEADERS_AND_STREAM = 5;
const PREFACE = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frameOf(SETTINGS, 0, 0)]);
const GET = { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "a" };

describe("an HTTP/2 client that closes its connection (FIN)", () => {
  const clients = {
    "in the clear": (door: FrontDoor) =>
      connect({ port: door.httpPort, host: "127.0.0.1", allowHalfOpen: true }),
    "over TLS": (door: FrontDoor) =>
      connectTls({
        port: door.httpsPort,
        host: "127.0.0.1",
        ALPNProtocols: ["h2"],
        rejectUnauthorized: false,
        allowHalfOpen: true,
      } as object),
  };
  for (const [where, open] of Object.entries(clients)) {
    it(`${where}: gives up the connection and that of its backend`, async () => {
      const backends: Socket[] = [];
      const upstream = await listenRaw((socket) => void backends.push(socket));
      onTestFinished(() => upstream.close());
      const door = await doorTo(upstream.port);
      const client = open(door);
      onTestFinished(() => void client.destroy());
      client.on("error", () => {}).resume();
      const ended = once(client, "end");
      client.write(
        Buffer.concat([PREFACE, frameOf(HEADERS, END_OF_HEADERS_AND_STREAM, 1, headerBlockOf(GET))]),
      );
      await until(() => upstream.received().includes("\r\n\r\n"), "the request at the backend");
      client.end();
      await ended;
      await until(() => backends.every((socket) => socket.readableEnded || socket.destroyed), "its end");
    });

    it(`${where}: without a stream as well`, async () => {
      const door = await doorTo(await http1Backend());
      const client = open(door);
      onTestFinished(() => void client.destroy());
      client.on("error", () => {});
      client.write(PREFACE);
      await once(client, "data");
      client.resume();
      client.end();
      await once(client, "end");
    });
  }
});

describe("the last DATA frame of an answer over HTTP/2", () => {
  /** Type and flags of the frames of stream 1, up to the end of the stream. `rest` is sent once the client has the first DATA frame. */
  async function framesOfAnswer(beginning: string, rest?: string): Promise<[type: number, flags: number][]> {
    const backends: Socket[] = [];
    const upstream = await listenRaw((socket) => {
      backends.push(socket);
      socket.once("data", () => socket.write(beginning));
    });
    onTestFinished(() => upstream.close());
    const client = connect((await doorTo(upstream.port)).httpPort, "127.0.0.1");
    onTestFinished(() => void client.destroy());
    client.on("error", () => {});
    let bytes = Buffer.alloc(0);
    client.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
    });
    client.write(
      Buffer.concat([PREFACE, frameOf(HEADERS, END_OF_HEADERS_AND_STREAM, 1, headerBlockOf(GET))]),
    );
    const frames = (): [type: number, flags: number][] => {
      const found: [number, number][] = [];
      for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
        if (bytes.readUInt32BE(at + 5) === 1) found.push([bytes.readUInt8(at + 3), bytes.readUInt8(at + 4)]);
      }
      return found;
    };
    if (rest !== undefined) {
      await until(() => frames().some(([type]) => type === 0), "the beginning of the body");
      backends[0]?.write(rest);
    }
    await until(() => frames().some(([type, flags]) => type <= HEADERS && (flags & 1) === 1), "the end");
    return frames();
  }
  const HEAD = [HEADERS, 4];

  it("ends the stream, where the length is known", async () => {
    const head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
    expect(await framesOfAnswer(`${head}okay`)).toEqual([HEAD, [0, 1]]);
    expect(await framesOfAnswer(`${head}ok`, "ay")).toEqual([HEAD, [0, 0], [0, 1]]);
  });

  it("ends the stream, where a chunked body is there as a whole", async () => {
    const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    expect(await framesOfAnswer(`${head}2\r\nok\r\n0\r\n\r\n`)).toEqual([HEAD, [0, 1]]);
  });

  it("leaves the end to trailers, where there are some", async () => {
    const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    expect(await framesOfAnswer(`${head}2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n`)).toEqual([
      HEAD,
      [0, 0],
      [HEADERS, 5],
    ]);
  });
});
