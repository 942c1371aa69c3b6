import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ProbeHandler } from "../../../src/api/probe-objects.ts";
import { eventually } from "../../support/eventually.ts";
import {
  closedPort,
  http2Frame,
  MISBEHAVIOURS,
  type MisbehavingServer,
  type Misbehaviour,
  SETTINGS,
  startServer,
} from "../../support/misbehaving-servers.ts";
import { probe } from "./probe.ts";

/** Of servers that say nothing: short, for they are many. */
const LATE_MS = 400;
/** Of servers that are connected in time, also on a busy machine, and answer no call. */
const CALL_LATE_MS = 3_000;
/** Of all others, whose answers are what is tried. */
const ANSWER_MS = 60_000;

const LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
const NO_HTTP2 =
  "http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header";
const BROKEN = "net/http: HTTP/1.x transport connection broken";
const NOT_CONNECTED =
  /^timeout: failed to connect service "127\.0\.0\.1:\d+" within 400ms: context deadline exceeded$/;
const NO_ANSWER = "timeout: health rpc did not complete within 3s";
const RPC = "error: health rpc probe failed: rpc error: code =";

type Expected = readonly [verdict: string, text: string | RegExp];

// What Kubernetes' own probers say to the same servers; test/real/probe-oracle.test.ts asks them.
const httpCases: readonly (readonly [Misbehaviour, ...Expected])[] = [
  ["silent", "Failure", LATE],
  ["closes at once", "Failure", "EOF"],
  ["resets at once", "Failure", /read tcp \S+->\S+: read: connection reset by peer$/],
  ["answers garbage", "Failure", `${BROKEN}: malformed HTTP status code "world"`],
  ["answers a byte at a time", "Failure", LATE],
  ["has two lengths", "Failure", /multiple Content-Length headers; got \["3" "4"\]$/],
  ["ends in its head", "Failure", `${BROKEN}: malformed MIME header: missing colon: "Content-Le"`],
  ["sends a header without a colon", "Failure", `${BROKEN}: malformed MIME header: missing colon: "foo bar"`],
  ["has a length and chunks", "Success", "abc"],
  ["folds a header", "Success", "hi"],
  [
    "folds its first header",
    "Failure",
    `${BROKEN}: malformed MIME header initial line: " Content-Length: 2"`,
  ],
  ["has a bare CR in a header", "Failure", `${BROKEN}: malformed MIME header line: "A: b\\rC: d"`],
  ["has NUL in a header", "Failure", `${BROKEN}: malformed MIME header line: "A: b\\x00"`],
  ["has a space before a colon", "Success", "hi"],
  ["pads its status", "Success", "hi"],
  ["has a status below 100", "Failure", "HTTP probe failed with statuscode: 99"],
  ["has an empty length", "Failure", `${BROKEN}: invalid empty Content-Length ""`],
  ["has another coding", "Failure", `${BROKEN}: unsupported transfer encoding: "gzip"`],
  ["has a coding in HTTP/1.0", "Success", "hi"],
  ["has no reason phrase", "Success", ""],
  ["ends lines with LF", "Success", "hi"],
  ["says HTTP/2.0 in HTTP/1", "Success", ""],
  ["sends interim answers", "Success", "hi"],
  ["switches protocols", "Failure", "HTTP probe failed with statuscode: 101"],
  ["answers 204", "Success", ""],
  ["answers 300", "Warning", "Probe terminated redirects, Response body: hi"],
  ["answers 304", "Warning", "Probe terminated redirects, Response body: "],
  ["answers 404", "Failure", "HTTP probe failed with statuscode: 404"],
  ["redirects nowhere", "Warning", "Probe terminated redirects, Response body: hi"],
  ["redirects to another host", "Warning", "Probe terminated redirects, Response body: hi"],
  ["redirects to another scheme", "Failure", 'Get "ftp://127.0.0.1/x": unsupported protocol scheme "ftp"'],
  ["redirects for ever", "Failure", 'Get "/again": stopped after 10 redirects'],
  ["sends 100 MB", "Success", /^x{10240}$/],
];

const bodyErrors: readonly (readonly [Misbehaviour, string | RegExp])[] = [
  [
    "sends its body a byte at a time",
    "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
  ],
  ["ends its body early", "unexpected EOF"],
  ["resets in its body", /connection reset by peer$/],
  ["sends a bad chunk", "invalid byte in chunk length"],
  ["ends chunk lines with LF", "chunked line ends with bare LF"],
];

const h2cCases: readonly (readonly [Misbehaviour, ...Expected])[] = [
  ["silent", "Failure", LATE],
  ["closes at once", "Failure", /unexpected EOF$|connection reset by peer$/],
  ["answers garbage", "Failure", /: http2: frame too large$/],
  ["answers 404", "Failure", NO_HTTP2],
  ["speaks HTTP/2 and says nothing", "Failure", LATE],
  [
    "goes away with an error",
    "Failure",
    "http2: Transport received GOAWAY from server ErrCode:INTERNAL_ERROR",
  ],
  ["goes away gracefully, always", "Failure", LATE],
  [
    "resets the stream with INTERNAL_ERROR",
    "Failure",
    "stream error: stream ID 1; INTERNAL_ERROR; received from peer",
  ],
  ["resets the stream with CANCEL", "Failure", "stream error: stream ID 1; CANCEL; received from peer"],
  ["resets the stream with NO_ERROR", "Failure", "stream error: stream ID 1; NO_ERROR; received from peer"],
  ["closes after an HTTP/2 request", "Failure", "unexpected EOF"],
  ["sends half a frame", "Failure", "unexpected EOF"],
  ["announces a frame too large", "Failure", /: http2: frame too large$/],
  ["answers 200 without a body over HTTP/2", "Success", ""],
];

const grpcCases: readonly (readonly [Misbehaviour, ...Expected])[] = [
  ["silent", "Failure", NOT_CONNECTED],
  ["closes at once", "Failure", NOT_CONNECTED],
  ["resets at once", "Failure", NOT_CONNECTED],
  ["answers 404", "Failure", NOT_CONNECTED],
  ["announces a frame too large", "Failure", NOT_CONNECTED],
  ["speaks HTTP/2 and says nothing", "Failure", NO_ANSWER],
  ["goes away with an error", "Failure", `${RPC} Unavailable desc = the connection is draining`],
  [
    "resets the stream with INTERNAL_ERROR",
    "Failure",
    `${RPC} Internal desc = stream terminated by RST_STREAM with error code: INTERNAL_ERROR`,
  ],
  [
    "resets the stream with CANCEL",
    "Failure",
    `${RPC} Canceled desc = stream terminated by RST_STREAM with error code: CANCEL`,
  ],
  ["resets the stream with REFUSED_STREAM", "Failure", NO_ANSWER],
  ["closes after an HTTP/2 request", "Failure", `${RPC} Unavailable desc = error reading from server: EOF`],
  ["sends half a frame", "Failure", `${RPC} Unavailable desc = error reading from server: unexpected EOF`],
  [
    "answers 200 without a body over HTTP/2",
    "Failure",
    `${RPC} Unknown desc = unexpected HTTP status code received from server: 200 (OK); malformed header: missing HTTP content-type`,
  ],
];

describe("probes of servers that misbehave", () => {
  const servers = new Map<string, MisbehavingServer>();

  beforeAll(async () => {
    for (const [name, behaviour] of Object.entries(MISBEHAVIOURS)) {
      servers.set(name, await startServer(behaviour));
    }
  });
  afterAll(() => Promise.all([...servers.values()].map((server) => server.close())));

  /** Judged by the expected text: only a probe that ends by its time has a short one. */
  function timeoutMsOf(text: string | RegExp): number {
    if (text === NO_ANSWER) return CALL_LATE_MS;
    return /deadline exceeded/.test(typeof text === "string" ? text : text.source) ? LATE_MS : ANSWER_MS;
  }

  /** The result, with no socket left. */
  async function resultOf(
    name: Misbehaviour,
    text: string | RegExp,
    handler: (port: number) => ProbeHandler,
  ) {
    const server = servers.get(name);
    if (server === undefined) throw new Error(`no server ${name}`);
    const result = await probe(handler(server.port), { timeoutMs: timeoutMsOf(text) });
    await eventually("the probe's socket is closed", () => server.openConnections() === 0);
    return result;
  }

  function expectText(text: string, wanted: string | RegExp): void {
    if (typeof wanted === "string") expect(text.slice(-wanted.length || text.length)).toBe(wanted);
    else expect(text).toMatch(wanted);
  }

  it.each(httpCases)("HTTP/1.1, one that %s: %s", async (name, verdict, text) => {
    const { result, message, error } = await resultOf(name, text, (port) => ({
      httpGet: { port, path: "/p" },
    }));
    expect({ result, error }).toEqual({ result: verdict, error: undefined });
    expectText(message, text);
  });

  it.each(bodyErrors)("HTTP/1.1, one that %s: an error, not a failure", async (name, text) => {
    const { error } = await resultOf(name, text, (port) => ({ httpGet: { port, path: "/p" } }));
    expectText(error ?? "", text);
  });

  it.each(h2cCases)("h2c, one that %s: %s", async (name, verdict, text) => {
    const { result, message } = await resultOf(name, text, (port) => ({
      httpGet: { port, path: "/p", protocol: "HTTP2" },
    }));
    expect(result).toBe(verdict);
    expectText(message, text);
  });

  it.each(grpcCases)("gRPC, one that %s: %s", async (name, verdict, text) => {
    const { result, message } = await resultOf(name, text, (port) => ({ grpc: { port } }));
    expect(result).toBe(verdict);
    expectText(message, text);
  });

  it("TLS of servers that speak none", async () => {
    for (const name of ["silent", "answers garbage", "closes at once"] as const) {
      const https = await resultOf(name, LATE, (port) => ({ httpGet: { port, scheme: "HTTPS" } }));
      expect(https.result).toBe("Failure");
      const grpc = await resultOf(name, NOT_CONNECTED, (port) => ({ grpc: { port, mode: "TLS" } }));
      expect(grpc.message).toMatch(NOT_CONNECTED);
    }
  });

  it("a head without end is given up at its bound", async () => {
    const endless = await startServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      const line = `X-Line: ${"x".repeat(60_000)}\r\n`;
      const send = (): void => {
        while (!socket.destroyed && socket.write(line));
      };
      socket.on("drain", send);
      socket.resume();
      send();
    });
    const { result, message } = await probe({ httpGet: { port: endless.port } });
    expect(result).toBe("Failure");
    expect(message).toMatch(/net\/http: server response headers exceeded 1048576 bytes; aborted$/);
    await endless.close();
  });
});

describe("an HTTP/2 server that asks and does not read", () => {
  it("is given up before its answers are many", async () => {
    const asking = await startServer((socket) => {
      socket.write(SETTINGS);
      const pings = Buffer.concat(Array.from({ length: 1_000 }, () => http2Frame(6, 0, 0, Buffer.alloc(8))));
      const send = (): void => {
        while (!socket.destroyed && socket.write(pings));
      };
      socket.on("drain", send);
      socket.pause();
      send();
    });
    const { result, message } = await probe({ httpGet: { port: asking.port, protocol: "HTTP2" } });
    expect(result).toBe("Failure");
    expect(message).toMatch(/: http2: too many control frames$/);
    await asking.close();
  });
});

describe("targets that are none", () => {
  it.each([0, 65_536, -1])("port %i is an error for httpGet and tcpSocket", async (port) => {
    for (const handler of [{ httpGet: { port } }, { tcpSocket: { port } }]) {
      const { result, error } = await probe(handler);
      expect({ result, error }).toEqual({ result: "Unknown", error: `invalid port number: ${port}` });
    }
  });

  it.each([0, 65_536])("port %i is a failure for grpc, after its whole time", async (port) => {
    const { result, message } = await probe({ grpc: { port } }, { timeoutMs: 200 });
    expect(result).toBe("Failure");
    expect(message).toBe(
      `timeout: failed to connect service "127.0.0.1:${port}" within 200ms: context deadline exceeded`,
    );
  });

  it("a port's name that no container port has", async () => {
    const { error } = await probe({ httpGet: { port: "web" } });
    expect(error).toBe('no container port has the name "web"');
  });

  it("a name that does not exist is a failure, a missing handler an error", async () => {
    const unknown = await probe({ tcpSocket: { port: 80 } }, { target: { host: "nosuch.invalid" } });
    expect(unknown.result).toBe("Failure");
    expect(unknown.message).toMatch(/^dial tcp: lookup nosuch\.invalid: /);
    const missing = await probe({}, { target: { name: "pod:main" } });
    expect(missing.error).toBe("missing probe handler for pod:main");
  });

  it("a closed port", async () => {
    const port = await closedPort();
    const refused = `dial tcp 127.0.0.1:${port}: connect: connection refused`;
    expect((await probe({ tcpSocket: { port } })).message).toBe(refused);
    expect((await probe({ httpGet: { port } })).message).toBe(`Get "http://127.0.0.1:${port}/": ${refused}`);
  });

  it("a caller that no longer waits ends a probe at once", async () => {
    const server = await startServer(MISBEHAVIOURS.silent);
    const controller = new AbortController();
    const running = probe(
      { httpGet: { port: server.port } },
      { signal: controller.signal, timeoutMs: 60_000 },
    );
    controller.abort();
    expect((await running).message).toMatch(/: context canceled$/);
    await server.close();
  });
});
