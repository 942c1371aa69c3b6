import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import {
  createHttp1Server,
  type Http1Bounds,
} from "../../../../packages/client/src/http/downstream/http1-server.ts";

// The bound under test.
const REFUSAL_LINGER_MS = 500;

const BOUNDS: Http1Bounds = { maxHeaderBytes: 16 * 1024, headMs: 300, keepAliveMs: 5_000 };
const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function start(upgrades: string[] = []): Promise<number> {
  const server = createHttp1Server(BOUNDS, {
    onUpgrade: ({ httpVersion }, socket) => {
      upgrades.push(httpVersion);
      socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    },
    onRequest: (request, response) => {
      request.resume();
      response.end("hello");
    },
    onExpectContinue: (_request, response) => {
      response.end("hello");
    },
    onConnect: (socket) => {
      upgrades.push("CONNECT");
      socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
    },
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** What comes back for these parts, sent one after the other, and how the connection ends. */
async function exchange(port: number, parts: readonly string[], keepsOpen = true) {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let [answer, reset] = ["", false];
  socket.on("data", (bytes) => {
    answer += bytes.toString("latin1");
  });
  socket.on("error", () => {
    reset = true;
  });
  const over = new Promise<void>((resolve) => {
    socket.once("end", resolve);
    socket.once("close", () => resolve());
  });
  await once(socket, "connect");
  for (const part of parts)
    await new Promise<void>((resolve) => socket.write(part, "latin1", () => resolve()));
  if (!keepsOpen) socket.end();
  await over;
  socket.destroy();
  return { answer, reset };
}

it("a head past its bound is answered 431 with a reason, and its client reads it while it still sends", async () => {
  const port = await start();
  const parts = Array.from({ length: 40 }, () => "x".repeat(64 * 1024));
  for (let round = 0; round < 5; round++) {
    const { answer, reset } = await exchange(port, ["GET / HTTP/1.1\r\nHost: a\r\nX-Big: ", ...parts]);
    expect(reset).toBe(false);
    expect(answer).toMatch(
      /^HTTP\/1\.1 431 Request Header Fields Too Large\r\nContent-Type: text\/plain; charset=utf-8\r\nConnection: close\r\n\r\n431 .* more than 16384 bytes$/,
    );
  }
});

it.each([
  ["no HTTP at all", "hello\r\n\r\n", 400],
  ["a header line without a colon", "GET / HTTP/1.1\r\nHost a\r\n\r\n", 400],
  [
    "a length and chunks",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    400,
  ],
  ["a request line without a version, whose head has no end", "GET /\r\n", 400],
  ["half a head", "GET / HTTP/1.1\r\nHost: a\r\n", 408],
])("%s is answered %s", async (_, bytes, status) => {
  const { answer, reset } = await exchange(await start(), [bytes]);
  expect([answer.split(" ", 2)[1], reset]).toEqual([String(status), false]);
  expect(answer).toMatch(new RegExp(`\\r\\n\\r\\n${status} [A-Z].*: .+`));
});

it.each([
  "GET / HTTP/0.9\r\n\r\n",
  "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
])("%j is answered 505", async (bytes) => {
  expect((await exchange(await start(), [bytes])).answer).toMatch(/^HTTP\/1\.1 505 /);
});

it("a 505 that the kernel does not take, behind answers that its client has not read, ends", async () => {
  const port = await start();
  const ended = new Promise((resolve) =>
    servers[0]?.on("connection", (socket) => {
      socket._write = () => {};
      socket._writev = () => {};
      socket.once("close", resolve);
    }),
  );
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  socket.write("GET / HTTP/2.0\r\nHost: a\r\n\r\n");
  await ended;
  socket.destroy();
});

it.each([
  ["a request", []],
  ["one that waits for 100", ["Expect: 100-continue", "Content-Length: 3"]],
  ["an upgrade", ["Connection: Upgrade", "Upgrade: websocket"]],
])("%s with two Hosts is answered 400, as Go's servers answer", async (_, more) => {
  const upgrades: string[] = [];
  const head = ["GET / HTTP/1.1", "Host: a", "hOST: a", ...more, "", ""].join("\r\n");
  const { answer } = await exchange(await start(upgrades), [head]);
  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(answer).toContain("400 Bad Request: too many Host headers");
  expect(upgrades).toEqual([]);
});

it.each(["0.9", "2.0"])("an upgrade of HTTP/%s is answered 505, too", async (version) => {
  const upgrades: string[] = [];
  const lines = ["Host: a", "Connection: Upgrade", "Upgrade: websocket"];
  const head = [`GET / HTTP/${version}`, ...lines, "", ""].join("\r\n");
  const { answer, reset } = await exchange(await start(upgrades), [head]);
  expect(answer).toMatch(/^HTTP\/1\.1 505 HTTP Version Not Supported\r\n/);
  expect(answer.endsWith(": unsupported protocol version")).toBe(true);
  expect([reset, upgrades]).toEqual([false, []]);
});

it("a client that neither reads on nor closes is let go", async () => {
  const port = await start();
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nbad\r\n\r\n");
  socket.resume();
  const startMs = performance.now();
  await once(socket, "end");
  const [server] = servers;
  await expect
    .poll(() => new Promise((resolve) => server?.getConnections((_, count) => resolve(count))), {
      timeout: 10_000,
    })
    .toBe(0);
  expect(performance.now() - startMs).toBeGreaterThan(REFUSAL_LINGER_MS / 2);
  socket.destroy();
});

it.each([
  ["version 1", "PROXY TCP4 203.0.113.9 127.0.0.1 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"],
  ["version 2", "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0GET / HTTP/1.1\r\nHost: a\r\n\r\n"],
])("a PROXY protocol header of %s is answered 400 with what it is", async (_version, bytes) => {
  const { answer } = await exchange(await start(), [bytes]);
  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(answer).toContain("400 Bad Request: a PROXY protocol header, which this listener does not take");
});

it.each([
  "LIST",
  "BAN",
  "VERSION-CONTROL",
  "RPC_IN_DATA",
  "list",
  "GETX",
  "ANNOUNCE",
])("the method %s, which Node's parser does not know, is answered 501", async (method) => {
  const port = await start();
  const expected = `501 Not Implemented: the method ${method} is not known here`;
  const { answer } = await exchange(port, [`${method} /v1/x HTTP/1.1\r\nHost: a\r\n\r\n`]);
  expect(answer).toMatch(/^HTTP\/1\.1 501 Not Implemented\r\n(?:.*\r\n)*Connection: close\r\n/);
  expect(answer.endsWith(`\r\n\r\n${expected}`)).toBe(true);
  const behind = await exchange(port, [`GET / HTTP/1.1\r\nHost: a\r\n\r\n${method} / HTTP/1.1\r\n\r\n`]);
  expect(behind.answer).not.toMatch(/ 400 /);
});

it.each([
  "G@T / HTTP/1.1\r\n\r\n",
  "\x16\x03\x01\x02\x00\x01\x00\r\n",
  "LIST\r\n\r\n",
  "LIST / HTTP/1.1 more\r\n\r\n",
  "HTTP/1.1 200 OK\r\n\r\n",
])("%j is no request, and is answered 400", async (text) => {
  const { answer } = await exchange(await start(), [text]);
  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
});

it.each([
  ["with two Hosts", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nHost: b:1\r\n\r\n", 400],
  ["of HTTP/0.9", "CONNECT a:1 HTTP/0.9\r\nHost: a:1\r\n\r\n", 505],
])("a CONNECT %s is refused before it is taken over", async (_, head, status) => {
  const upgrades: string[] = [];
  const { answer, reset } = await exchange(await start(upgrades), [head]);
  expect([answer.split(" ", 2)[1], reset, upgrades]).toEqual([String(status), false, []]);
});

it("a CONNECT that nobody takes is answered 405", async () => {
  const server = createHttp1Server(BOUNDS, { onRequest: (_request, response) => response.end() });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const head = "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n";
  const { answer, reset } = await exchange((server.address() as AddressInfo).port, [head]);
  expect([answer.split("\r\n", 1)[0], reset]).toEqual(["HTTP/1.1 405 Method Not Allowed", false]);
});
