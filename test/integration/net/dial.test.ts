import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { createServer as createTlsServer, type Server, TLSSocket, type TlsOptions } from "node:tls";
import { generate } from "selfsigned";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { requestUpgrade } from "../../../packages/client/src/http/upgrade/upgrade-request.ts";
import { HttpUpstream } from "../../../packages/client/src/http/upstream/http-upstream.ts";
import { dial } from "../../../packages/client/src/net/dial.ts";
import { goDialErrorText } from "../../../packages/client/src/net/go-dial-error.ts";
import { UpstreamTls } from "../../../packages/client/src/net/tls.ts";
import { closeServer, listenRaw, openSocketCount, until } from "../../support/http/loopback.ts";
import { exchange, startForwarder } from "../http/http-pair.ts";

// The bound under test.
const MAX_REMEMBERED_SESSIONS = 1000;

interface Pair {
  readonly cert: string;
  readonly key: string;
}

let loopback: Pair;
let named: Pair;
let expired: Pair;
let client: Pair;
const cleanups: (() => Promise<void>)[] = [];

async function certificate(
  commonName: string,
  names: { dns?: string; ip?: string },
  notAfterDate?: Date,
): Promise<Pair> {
  const altNames = [
    ...(names.dns === undefined ? [] : [{ type: 2 as const, value: names.dns }]),
    ...(names.ip === undefined ? [] : [{ type: 7 as const, ip: names.ip }]),
  ];
  const { cert, private: key } = await generate([{ name: "commonName", value: commonName }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true },
      { name: "subjectAltName", altNames },
    ],
    ...(notAfterDate === undefined ? {} : { notBeforeDate: new Date(0), notAfterDate }),
  });
  return { cert, key };
}

beforeAll(async () => {
  loopback = await certificate("node", { ip: "127.0.0.1" });
  named = await certificate("node", { dns: "node.example" });
  expired = await certificate("node", { ip: "127.0.0.1" }, new Date(86_400_000));
  client = await certificate("sluice", { dns: "sluice" });
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  await until(() => openSocketCount() === 0, "all sockets closed");
});

async function listenTls(
  options: TlsOptions,
  onConnection: (socket: TLSSocket) => void = () => {},
): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createTlsServer(options, (socket) => {
    socket.on("error", () => {});
    socket.resume();
    onConnection(socket);
  });
  server.on("connection", (socket: Socket) => sockets.add(socket));
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => closeServer(server, sockets));
  return (server.address() as AddressInfo).port;
}

const at = (
  port: number,
  tls?: UpstreamTls,
): { host: string; port: number; tls: UpstreamTls | undefined } => ({
  host: "127.0.0.1",
  port,
  tls,
});

describe("dial", () => {
  it("words a refused connection as Go does", async () => {
    const node = await listenRaw(() => {});
    await node.close();
    await expect(dial(at(node.port))).rejects.toMatchObject({
      code: "dial-failed",
      message: `dial tcp 127.0.0.1:${node.port}: connect: connection refused`,
    });
  });

  it("words a name that does not exist as Go does", async () => {
    await expect(dial({ host: "node.invalid", port: 1 })).rejects.toMatchObject({
      code: "dial-failed",
      message: expect.stringMatching(
        /^dial tcp: lookup node\.invalid: (no such host|Temporary failure in name resolution)$/,
      ),
    });
  });

  it("covers the TLS handshake with its deadline", async () => {
    const node = await listenRaw(() => {});
    cleanups.push(node.close);
    await expect(dial(at(node.port, new UpstreamTls()), { dialTimeoutMs: 50 })).rejects.toMatchObject({
      code: "dial-failed",
      message: "net/http: TLS handshake timeout",
    });
    await until(
      () => node.sockets[0]?.readableEnded === true || node.sockets[0]?.destroyed === true,
      "closed",
    );
  });

  it("leaves nothing when aborted in the TLS handshake", async () => {
    const node = await listenRaw(() => {});
    cleanups.push(node.close);
    const abort = new AbortController();
    const pending = dial(at(node.port, new UpstreamTls()), { signal: abort.signal });
    await until(() => node.received() !== "", "client hello");
    abort.abort();
    await expect(pending).rejects.toMatchObject({ code: "aborted" });
  });

  it("verifies against the CA and offers http/1.1 only (TestDialURL)", async () => {
    const port = await listenTls({ ...loopback, ALPNProtocols: ["h2", "http/1.1"] });
    const socket = await dial(at(port, new UpstreamTls({ ca: loopback.cert })));
    expect(socket).toBeInstanceOf(TLSSocket);
    expect((socket as TLSSocket).alpnProtocol).toBe("http/1.1");
    expect((socket as TLSSocket).authorized).toBe(true);
    socket.destroy();
  });

  const refused: readonly (readonly [
    name: string,
    server: () => Pair,
    tls: () => UpstreamTls,
    text: string,
  ])[] = [
    [
      "an unknown authority",
      () => loopback,
      () => new UpstreamTls(),
      "x509: certificate signed by unknown authority",
    ],
    [
      "an expired certificate",
      () => expired,
      () => new UpstreamTls({ ca: expired.cert }),
      "x509: certificate has expired or is not yet valid",
    ],
    [
      "a certificate without the IP",
      () => named,
      () => new UpstreamTls({ ca: named.cert }),
      "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
    ],
    [
      "another name",
      () => named,
      () => new UpstreamTls({ ca: named.cert, serverName: "other.example" }),
      "x509: certificate is valid for node.example, not other.example",
    ],
  ];
  for (const [name, server, tls, text] of refused) {
    it(`refuses ${name} (TestDialURL)`, async () => {
      const port = await listenTls(server());
      await expect(dial(at(port, tls()))).rejects.toMatchObject({
        code: "dial-failed",
        message: `tls: failed to verify certificate: ${text}`,
      });
    });
  }

  it("accepts any certificate when told to, and the one of a server name (TestDialURL)", async () => {
    const port = await listenTls(named);
    for (const tls of [
      new UpstreamTls({ insecureSkipVerify: true }),
      new UpstreamTls({ ca: named.cert, serverName: "node.example" }),
    ]) {
      (await dial(at(port, tls))).destroy();
    }
  });

  it("tells a server that speaks no TLS", async () => {
    const node = await listenRaw((socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"));
    cleanups.push(node.close);
    await expect(dial(at(node.port, new UpstreamTls()))).rejects.toMatchObject({
      message: "tls: first record does not look like a TLS handshake",
    });
  });

  it("shows our certificate, and words its absence as Go does", async () => {
    const names: unknown[] = [];
    const answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
    const port = await listenTls(
      { ...loopback, ca: client.cert, requestCert: true, rejectUnauthorized: true },
      (socket) => {
        names.push(socket.getPeerCertificate().subject.CN);
        socket.write(answer);
      },
    );
    const ask = (tls: UpstreamTls): ReturnType<typeof requestUpgrade> =>
      requestUpgrade({ endpoint: at(port, tls), method: "GET", path: "/", headers: [] });
    const response = await ask(
      new UpstreamTls({ ca: loopback.cert, certificate: client.cert, key: client.key }),
    );
    if (response.kind === "switched") response.socket.destroy();
    expect(names).toEqual(["sluice"]);
    await expect(ask(new UpstreamTls({ ca: loopback.cert }))).rejects.toMatchObject({
      message: expect.stringMatching(
        /^(remote error: tls: certificate required|read tcp .*: connection reset by peer|EOF)$/,
      ),
    });
  });

  it("resumes sessions per endpoint, and never across identities", async () => {
    const port = await listenTls(loopback, (socket) => socket.write("x"));
    const dialAndRead = async (tls: UpstreamTls): Promise<boolean> => {
      const socket = (await dial(at(port, tls))) as TLSSocket;
      socket.resume();
      await until(() => tls.rememberedSessions > 0, "session ticket");
      const isReused = socket.isSessionReused();
      socket.destroy();
      return isReused;
    };
    const first = new UpstreamTls({ ca: loopback.cert });
    expect(await dialAndRead(first)).toBe(false);
    expect(await dialAndRead(first)).toBe(true);
    expect(await dialAndRead(new UpstreamTls({ ca: loopback.cert }))).toBe(false);
  });

  it("is what plain forwarding dials with: the same rules, the same words", async () => {
    const port = await listenTls(loopback, (socket) =>
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    );
    for (const [tls, expected] of [
      [new UpstreamTls({ ca: loopback.cert }), /^HTTP\/1\.1 200 OK[\s\S]*ok$/],
      [
        new UpstreamTls(),
        /dial-failed: tls: failed to verify certificate: x509: certificate signed by unknown authority$/,
      ],
    ] as const) {
      const forwarder = await startForwarder(port, {
        upstream: new HttpUpstream({ endpoint: at(port, tls) }),
      });
      cleanups.push(forwarder.close);
      const { text } = await exchange(
        forwarder.port,
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
      );
      expect(text).toMatch(expected);
    }
  });

  it("remembers a bounded number of sessions", () => {
    const tls = new UpstreamTls();
    for (let port = 0; port < MAX_REMEMBERED_SESSIONS + 5; port++)
      tls.rememberSession("h", port, Buffer.alloc(1));
    expect(tls.rememberedSessions).toBe(MAX_REMEMBERED_SESSIONS);
    expect(tls.connectOptions("h", 4)).not.toHaveProperty("session");
    expect(tls.connectOptions("h", 5)).toHaveProperty("session");
  });
});

describe("goDialErrorText", () => {
  const rows: readonly (readonly [error: object, text: string])[] = [
    [
      { code: "ECONNREFUSED", syscall: "connect", address: "::1", port: 5 },
      "dial tcp [::1]:5: connect: connection refused",
    ],
    [{ code: "EHOSTUNREACH", syscall: "connect" }, "dial tcp node:1: connect: no route to host"],
    [{ code: "ENETUNREACH", syscall: "connect" }, "dial tcp node:1: connect: network is unreachable"],
    [{ code: "ETIMEDOUT", syscall: "connect" }, "dial tcp node:1: connect: connection timed out"],
    [{ code: "ENOTFOUND", syscall: "getaddrinfo", hostname: "node" }, "dial tcp: lookup node: no such host"],
    [{ code: "ECONNRESET", syscall: "read" }, "read tcp node:1: read: connection reset by peer"],
    [{ code: "ECONNRESET" }, "EOF"],
    [{ code: "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA" }, "remote error: tls: unknown certificate authority"],
    [{ code: "ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE" }, "remote error: tls: handshake failure"],
  ];
  for (const [properties, text] of rows) {
    it(text, () => {
      expect(goDialErrorText(Object.assign(new Error("x"), properties), "node:1")).toBe(text);
    });
  }

  it("reports the first of several addresses", () => {
    const errors = [1, 2].map((port) =>
      Object.assign(new Error("x"), { code: "ECONNREFUSED", syscall: "connect", address: "10.0.0.1", port }),
    );
    expect(goDialErrorText(new AggregateError(errors), "node:1")).toBe(
      "dial tcp 10.0.0.1:1: connect: connection refused",
    );
  });
});
