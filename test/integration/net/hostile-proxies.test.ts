import { afterEach, expect, it } from "vitest";
import { connectThroughProxy } from "../../../packages/client/src/http/proxies/proxy-connection.ts";
import { dialThroughProxy } from "../../../src/http/proxies/egress-proxy.ts";
import { type Act, endlessly, slowly } from "../../support/hostile-acts.ts";
import { listenRaw, until } from "../../support/http/loopback.ts";

/** For proxies that answer; LATE_MS is for silent ones, whose time-out is under test. */
const DIAL_MS = 20_000;
const LATE_MS = 300;
/** What a busy machine may add to the time of a dial. */
const SPARE_MS = 3_000;
/** What a dial may read of an endless answer, with both systems' buffers. */
const MAX_TAKEN_BYTES = 32 * 1024 * 1024;
const NODE = { host: "10.0.0.7", port: 10_250 };

const writes =
  (text: string): Act =>
  (socket) =>
    void socket.write(text, "latin1");

/** Answers to CONNECT that open no tunnel. */
const REFUSED: Record<string, readonly [Act, RegExp]> = {
  "interim answers without end": [
    endlessly("", "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"),
    /header size limit exceeded|response headers exceeded|too large/,
  ],
  "a head of 2 MiB": [
    writes(`HTTP/1.1 200 OK\r\nA: ${"a".repeat(2 * 1024 * 1024)}\r\n\r\n`),
    /exceeded|too large/,
  ],
  "a head byte by byte": [slowly("HTTP/1.1 200 OK\r\nA: ", "a"), /timeout/],
  "nothing behind its interim answer": [writes("HTTP/1.1 100 Continue\r\n\r\n"), /timeout/],
  "101": [writes("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), /101/],
  "407 of a mebibyte": [
    writes(`HTTP/1.1 407 ${"Proxy ".repeat(9_000)}\r\nProxy-Authenticate: Basic realm="x"\r\n\r\n`),
    /407/,
  ],
  "HTTP/0.9": [writes("hello\r\n\r\n"), /malformed HTTP response/],
  "a status of four digits": [writes("HTTP/1.1 2000 OK\r\n\r\n"), /malformed|invalid|2000/],
  "a status that is none": [writes("HTTP/1.1 0x0 OK\r\n\r\n"), /malformed|invalid/],
  "an end in its head": [(socket) => void socket.end("HTTP/1.1 200 OK\r\nA: "), /EOF/],
  "an end at once": [(socket) => void socket.end(), /EOF/],
};

/** Answers that open one: CONNECT's 2xx has no body (RFC 9110 section 9.3.6). */
const OPENED: Record<string, string> = {
  "204": "HTTP/1.1 204 No Content\r\n\r\n",
  "a length": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
  chunks: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
  "an interim answer first": "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
};

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function proxyThat(act: Act) {
  const proxy = await listenRaw((socket) => socket.once("data", () => act(socket, "")));
  cleanups.push(proxy.close);
  const server = { host: "127.0.0.1", port: proxy.port };
  const taken = () => proxy.sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);
  const isLeft = () => proxy.sockets.every((socket) => socket.readableEnded || socket.destroyed);
  return { server, taken, isLeft };
}

interface Server {
  readonly host: string;
  readonly port: number;
}

const WAYS = {
  "an egress proxy": (server: Server, dialTimeoutMs = DIAL_MS) =>
    dialThroughProxy({ server }, NODE, { dialTimeoutMs }),
  "a kubeconfig's proxy": (server: Server, dialTimeoutMs = DIAL_MS) =>
    connectThroughProxy({ endpoint: server, authorization: undefined }, NODE, { dialTimeoutMs }),
};

it.each(Object.keys(WAYS) as (keyof typeof WAYS)[])("%s opens no tunnel by a hostile answer", async (way) => {
  const problems: string[] = [];
  for (const [name, [act, text]] of Object.entries(REFUSED)) {
    const { server, taken, isLeft } = await proxyThat(act);
    const startedMs = performance.now();
    const isLate = text.test("timeout");
    const failure = await WAYS[way](server, isLate ? LATE_MS : DIAL_MS).then(
      (socket) => {
        socket.destroy();
        return "opened";
      },
      ({ message }: Error) => message,
    );
    if (!text.test(failure)) problems.push(`${name}: ${failure.slice(0, 200)}`);
    if (failure.length > 500) problems.push(`${name}: ${failure.length} characters`);
    if (performance.now() - startedMs > LATE_MS + SPARE_MS) problems.push(`${name}: too long`);
    if (taken() > MAX_TAKEN_BYTES) problems.push(`${name}: took ${taken()} bytes`);
    await until(isLeft, `${name} is left`);
    const honest = await proxyThat(writes("HTTP/1.1 200 OK\r\n\r\n"));
    (await WAYS[way](honest.server)).destroy();
  }
  expect(problems).toEqual([]);
});

it.each(Object.keys(OPENED))("a tunnel opened with %s begins behind the head", async (name) => {
  for (const way of Object.values(WAYS)) {
    const { server } = await proxyThat((socket) => {
      socket.write(OPENED[name] as string);
      socket.once("data", () => socket.end("from the node"));
    });
    const socket = await way(server);
    let received = "";
    socket.on("data", (part) => {
      received += part;
    });
    socket.resume();
    socket.write("to the node");
    await until(() => received !== "", "the node's bytes");
    expect(received).toBe("from the node");
    socket.destroy();
  }
});
