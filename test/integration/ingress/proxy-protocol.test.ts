import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EchoedRequest, type EchoPod, startEchoPod } from "../../support/echo-service.ts";
import { eventually } from "../../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { ask } from "../../support/http2-client.ts";
import { binaryHeader, withChecksum } from "../../support/protocols/proxy-protocol/binary-header.ts";
import { exchangeOver, proxiedSocket, tlsOver } from "../../support/proxied-socket.ts";

const PROXY = "127.0.0.9";
const LINE = "PROXY TCP4 203.0.113.7 127.0.0.1 40000 80\r\n";
const BINARY = withChecksum(0x21, 0x11, [203, 0, 113, 7, 127, 0, 0, 1, 0x9c, 0x40, 0, 80]);
const versions = [
  ["version 1", LINE],
  ["version 2", BINARY],
] as const;

let door: FrontDoor;
let pod: EchoPod;
let switching: Server;

beforeAll(async () => {
  pod = await startEchoPod("app", "app-1");
  switching = createServer().on("upgrade", ({ headers }, socket: Socket) => {
    socket.end(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfor ${headers["x-forwarded-for"]}`,
    );
  });
  switching.listen(0, "127.0.0.1");
  await once(switching, "listening");
  const { port } = switching.address() as AddressInfo;
  const rule = (host: string, service: string) => ({
    host,
    http: { paths: [{ path: "/", pathType: "Prefix", backend: backend(service) }] },
  });
  door = await FrontDoor.start(
    [
      ...serviceObjects("app", [pod]),
      ...serviceObjects("switching", [{ port }]),
      ingressObject("app", {
        rules: [rule("a.example.com", "app"), rule("switching.example.com", "switching")],
      }),
    ],
    { proxyProtocol: { from: [PROXY] }, accessLog: { path: "access.log" } },
    { limits: { maxConnectionsPerAddress: 40 }, timeouts: { handshake: "2s" } },
  );
  await door.serves(1);
});

afterAll(async () => {
  await door.stop();
  await pod.stop();
  switching.close();
});

const GET = "GET /x HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";
const forwardedFor = (answer: string): unknown =>
  (JSON.parse(answer.split("\r\n\r\n")[1] ?? "") as EchoedRequest).headers["X-Forwarded-For"];

describe.each(versions)("the address of %s", (_version, header) => {
  it("is the client's over HTTP/1.1, whether its request comes in the same read or later", async () => {
    const together = proxiedSocket(door.httpPort, Buffer.concat([Buffer.from(header), Buffer.from(GET)]));
    expect(forwardedFor(await exchangeOver(together, ""))).toEqual(["203.0.113.7"]);
    const apart = proxiedSocket(door.httpPort, header);
    await once(apart, "connect");
    expect(forwardedFor(await exchangeOver(apart, GET))).toEqual(["203.0.113.7"]);
  });

  it("is read byte by byte", async () => {
    const socket = proxiedSocket(door.httpPort, "");
    socket.setNoDelay(true);
    for (const byte of Buffer.from(header)) {
      socket.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    expect(forwardedFor(await exchangeOver(socket, GET))).toEqual(["203.0.113.7"]);
  });

  it("is the client's over TLS", async () => {
    const secure = await tlsOver(proxiedSocket(door.httpsPort, header));
    expect(forwardedFor(await exchangeOver(secure, GET))).toEqual(["203.0.113.7"]);
  });

  it.each(["http", "https"] as const)("is the client's over HTTP/2, %s", async (scheme) => {
    const plain = proxiedSocket(scheme === "http" ? door.httpPort : door.httpsPort, header);
    const socket = scheme === "http" ? plain : await tlsOver(plain, ["h2"]);
    const session = connectHttp2(`${scheme}://a.example.com`, { createConnection: () => socket });
    session.on("error", () => {});
    try {
      const { body } = await ask(session, "/x");
      expect((JSON.parse(body) as EchoedRequest).headers["X-Forwarded-For"]).toEqual(["203.0.113.7"]);
    } finally {
      session.destroy();
    }
  });

  it.each(["http", "https"] as const)("is the client's of an upgrade, %s", async (scheme) => {
    const plain = proxiedSocket(scheme === "http" ? door.httpPort : door.httpsPort, header);
    const socket = scheme === "http" ? plain : await tlsOver(plain);
    const upgrade =
      "GET / HTTP/1.1\r\nHost: switching.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    const received: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => received.push(chunk));
    socket.write(upgrade);
    await once(socket, "end");
    expect(Buffer.concat(received).toString()).toMatch(/^HTTP\/1\.1 101 [\s\S]*for 203\.0\.113\.7$/);
    socket.destroy();
  });
});

it("the proxy's own connections, and those whose client it does not know, have its own address", async () => {
  for (const header of [
    "PROXY UNKNOWN\r\n",
    binaryHeader(0x20, 0, []),
    binaryHeader(0x21, 0x31, Array(216).fill(0)),
  ])
    expect(forwardedFor(await exchangeOver(proxiedSocket(door.httpPort, header), GET))).toEqual([PROXY]);
});

it("an IPv4 client of an IPv6 proxy is that client", async () => {
  const mapped = [0x20, 1, 0xd, 0xb8, ...Array(12).fill(0)];
  mapped.splice(0, 16, ...Array(10).fill(0), 0xff, 0xff, 203, 0, 113, 7);
  const header = binaryHeader(0x21, 0x21, [...mapped, ...mapped, 0, 1, 0, 2]);
  expect(forwardedFor(await exchangeOver(proxiedSocket(door.httpPort, header), GET))).toEqual([
    "203.0.113.7",
  ]);
});

it("other addresses are served without a header", async () => {
  expect(forwardedFor(await exchangeOver(proxiedSocket(door.httpPort, GET, "127.0.0.1"), ""))).toEqual([
    "127.0.0.1",
  ]);
  const secure = await tlsOver(proxiedSocket(door.httpsPort, "", "127.0.0.1"));
  expect(forwardedFor(await exchangeOver(secure, GET))).toEqual(["127.0.0.1"]);
});

const refused = async (reason: string): Promise<number> =>
  (await door.readMetrics()).get(`sluice_connections_refused_total{reason="${reason}"}`) ?? 0;

describe("a connection is closed, counted and logged", () => {
  it.each([
    ["whose header comes from another address", "127.0.0.1", LINE + GET, "proxy-header-untrusted"],
    ["the same with version 2", "127.0.0.1", BINARY, "proxy-header-untrusted"],
    ["that a proxy begins without a header", PROXY, GET, "proxy-header-missing"],
    ["with another line", PROXY, `PROXY TCP4 a b c d\r\n${GET}`, "proxy-header-malformed"],
    [
      "with a wrong checksum",
      PROXY,
      Buffer.concat([BINARY.subarray(0, -1), Buffer.of(0)]),
      "proxy-header-malformed",
    ],
    ["whose header does not end", PROXY, "PROXY TCP4 203", "proxy-header-late"],
  ])("%s", async (_which, address, bytes, reason) => {
    const before = await refused(reason);
    expect(await exchangeOver(proxiedSocket(door.httpPort, bytes, address), "")).toBe("");
    expect(await exchangeOver(proxiedSocket(door.httpsPort, bytes, address), "")).toBe("");
    expect(await refused(reason)).toBe(before + 2);
    const line = door.logged.find((text) => text.includes(`"reason":"${reason}"`)) ?? "{}";
    expect(JSON.parse(line)).toMatchObject({ level: "warn", remoteAddress: address });
  });

  it("once a minute in the log, whatever number comes", async () => {
    for (let count = 0; count < 3; count++)
      await exchangeOver(proxiedSocket(door.httpPort, LINE, "127.0.0.1"), "");
    const lines = door.logged.filter((text) => text.includes("proxy-header-untrusted"));
    // One for each of the two ports.
    expect(lines).toHaveLength(2);
  });
});

it("connections count as their clients', and not as the proxy's", async () => {
  const open = (client: string) => proxiedSocket(door.httpPort, `PROXY TCP4 ${client} 127.0.0.1 1 2\r\n`);
  const held = Array.from({ length: 40 }, () => open("198.51.100.1"));
  const before = await refused("too-many-of-address");
  expect(await exchangeOver(open("198.51.100.1"), "")).toBe("");
  expect(await refused("too-many-of-address")).toBe(before + 1);
  expect(forwardedFor(await exchangeOver(open("198.51.100.2"), GET))).toEqual(["198.51.100.2"]);
  for (const socket of held) socket.destroy();
});

it("the access log names the client", async () => {
  const { readFileSync } = await import("node:fs");
  await eventually("lines", () => {
    const lines = readFileSync(`${door.folder}/access.log`, "utf8").trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).client)).toContain("203.0.113.7");
    return true;
  });
});
