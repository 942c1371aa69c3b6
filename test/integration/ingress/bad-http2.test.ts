import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { frameOf } from "../../support/http2-frames.ts";

/** A backend that reads a request, however large its head, and says how many bytes its head and body had. */
async function startMeasuringBackend() {
  const sockets = new Set<Socket>();
  let most = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    most = Math.max(most, sockets.size);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      text += chunk;
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
      const whole = end + 4 + length;
      if (text.length < whole) return;
      text = text.slice(whole);
      const body = JSON.stringify({ head: end, body: length });
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => sockets.size,
    mostConnections: () => most,
    stop,
  };
}

let upstream: Awaited<ReturnType<typeof startMeasuringBackend>>;
let door: FrontDoor;

beforeAll(async () => {
  upstream = await startMeasuringBackend();
  door = await FrontDoor.start(
    [
      ...serviceObjects("app", [{ port: upstream.port }]),
      ingressObject(
        "all",
        { defaultBackend: backend("app") },
        { annotations: { "sluice.dev/body-timeout-seconds": "1" } },
      ),
    ],
    {},
    { limits: { maxRequestHeaderBytes: 64 * 1024 } },
  );
});
afterAll(async () => {
  await door.stop();
  upstream.stop();
});

function session(): ClientHttp2Session {
  const opened = connectHttp2(`http://127.0.0.1:${door.httpPort}`, { maxSendHeaderBlockLength: 1024 * 1024 });
  opened.on("error", () => {});
  onTestFinished(() => opened.destroy());
  return opened;
}

/** How an exchange ended: its status, or what its stream was reset for. */
async function exchange(client: ClientHttp2Session, headers: object = {}): Promise<number | string> {
  const stream = client.request({ ":path": "/", ":authority": "a.com", ...headers });
  const failed = new Promise<string>((resolve) => {
    stream.on("error", (error: NodeJS.ErrnoException) => resolve(`${error.code} ${stream.rstCode}`));
  });
  const answered = once(stream, "response").then(([head]) => {
    stream.resume();
    return Number((head as IncomingHttpHeaders)[":status"]);
  });
  answered.catch(() => {});
  return await Promise.race([answered, failed]);
}

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const HEADERS = 1;
const SETTINGS = 4;
const GOAWAY = 7;
const CONTINUATION = 9;

/** `:method: GET`, `:scheme: http`, `:path: /` by HPACK's static table. */
const PSEUDO_HEADERS = Buffer.from([0x82, 0x86, 0x84]);
/** A literal that is not indexed: a name of one byte and a value. */
const literal = (value: string): Buffer =>
  Buffer.concat([Buffer.from([0x00, 1, "x".charCodeAt(0), value.length]), Buffer.from(value)]);

/** A connection of which a test writes every byte. Its bytes are kept; `ended` resolves when the front door is done with it. */
async function rawSession() {
  const socket = connect(door.httpPort, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {});
  const ended = new Promise<void>((resolve) => {
    socket.once("end", resolve);
    socket.once("close", () => resolve());
  });
  socket.write(Buffer.concat([PREFACE, frameOf(SETTINGS, 0, 0)]));
  const framesOf = (): { type: number; payload: Buffer }[] => {
    const bytes = Buffer.concat(chunks);
    const frames = [];
    for (let at = 0; at + 9 <= bytes.byteLength; ) {
      const length = bytes.readUIntBE(at, 3);
      frames.push({ type: bytes.readUInt8(at + 3), payload: bytes.subarray(at + 9, at + 9 + length) });
      at += 9 + length;
    }
    return frames;
  };
  return { socket, ended, framesOf };
}

describe("a flood of CONTINUATION frames", () => {
  it.each([
    ["empty ones", Buffer.alloc(0)],
    ["ones with headers", literal("v".repeat(100))],
    ["large ones", Buffer.concat(Array.from({ length: 150 }, () => literal("v".repeat(100))))],
  ])("ends the session that sends it and no other: %s", async (_what, payload) => {
    const other = session();
    expect(await exchange(other)).toBe(200);
    const { socket, ended, framesOf } = await rawSession();
    // END_STREAM, but not END_HEADERS: what follows must be CONTINUATION.
    socket.write(frameOf(HEADERS, 0x1, 1, PSEUDO_HEADERS));
    const next = frameOf(CONTINUATION, 0, 1, payload);
    let sent = 0;
    let isOver = false;
    void ended.then(() => {
      isOver = true;
    });
    while (!isOver && sent < 20_000) {
      for (let index = 0; index < 100; index++, sent++) socket.write(next);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await ended;
    expect(sent).toBeLessThan(20_000);
    expect(framesOf().map(({ type }) => type)).toContain(GOAWAY);
    expect(await exchange(other)).toBe(200);
    expect(await exchange(session())).toBe(200);
  });
});

describe("headers of 64 KiB", () => {
  const lines = (count: number, bytes: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, "v".repeat(bytes)]));

  it("below the bound arrive whole", async () => {
    expect(await exchange(session(), lines(60, 1_000))).toBe(200);
  });

  it("and more in many lines cost the stream and no other", async () => {
    const client = session();
    expect(await exchange(client)).toBe(200);
    expect(await exchange(client, lines(100, 1_000))).toBe(
      `ERR_HTTP2_STREAM_ERROR ${constants.NGHTTP2_ENHANCE_YOUR_CALM}`,
    );
    expect(await exchange(client)).toBe(200);
  });

  it("and more in one line cost the session, whose header table is lost, and no other", async () => {
    const [client, other] = [session(), session()];
    expect(await exchange(other)).toBe(200);
    expect(await exchange(client, lines(1, 100_000))).toMatch(/^ERR_HTTP2_SESSION_ERROR/);
    expect(await exchange(other)).toBe(200);
  });
});

describe("slow bodies", () => {
  it("that go on arrive whole, in pieces as far apart as is allowed, over HTTP/2 and HTTP/1.1", async () => {
    const stream = session().request({
      ":method": "POST",
      ":path": "/",
      ":authority": "a.com",
      "content-length": "15",
    });
    const socket = connect(door.httpPort, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.setEncoding("latin1");
    let answer = "";
    socket.on("data", (text: string) => {
      answer += text;
    });
    socket.write("POST / HTTP/1.1\r\nHost: a.com\r\nContent-Length: 15\r\n\r\n");
    // Longer than the time-out in all, never as long at once.
    for (let piece = 0; piece < 15; piece++) {
      await delay(100);
      stream.write("x");
      socket.write("x");
    }
    stream.end();
    const [headers] = await once(stream, "response");
    expect(headers[":status"]).toBe(200);
    await expect.poll(() => answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*"body":15\}$/);
  });

  it("that stop are answered 408, and the backend's connection is let go", async () => {
    const client = session();
    const silent = { ":method": "POST", "content-length": "10" };
    const waiting = Array.from({ length: 20 }, () => exchange(client, silent));
    const socket = connect(door.httpPort, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.write("POST / HTTP/1.1\r\nHost: a.com\r\nContent-Length: 10\r\n\r\nhalf");
    const answered = once(socket, "data");
    // Meanwhile others are served, on the same session as well.
    const get = client.request({ ":path": "/", ":authority": "a.com" });
    expect((await once(get, "response"))[0][":status"]).toBe(200);
    get.resume();
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => 408));
    expect(String((await answered)[0])).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(upstream.mostConnections()).toBeGreaterThanOrEqual(21);
    await expect.poll(() => upstream.connections()).toBeLessThan(21);
  });
});
