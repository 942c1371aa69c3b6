import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { createServer, TLSSocket, type TlsOptions } from "node:tls";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { connectThroughProxy } from "../../../packages/client/src/http/proxies/proxy-connection.ts";
import { dial } from "../../../packages/client/src/net/dial.ts";
import { UpstreamTls } from "../../../packages/client/src/net/tls.ts";
import {
  type IssueOptions,
  issueCertificate,
  type TestCertificate,
} from "../../support/test-certificates.ts";
import { TunnelProxy } from "../../support/tunnel-proxy.ts";

const NAME = "node.example";
const DAY_MS = 86_400_000;
/** What users and logs may be told of a certificate, whatever it says. */
const MAX_TOLD_CHARACTERS = 4_500;
const manyNames = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `n${index}.example`);

let authority: TestCertificate;
beforeAll(async () => {
  authority = await issueCertificate({ commonName: "authority" });
});

async function listen(options: TlsOptions, onSocket: (socket: TLSSocket) => void = () => {}) {
  const sockets: TLSSocket[] = [];
  const server = createServer(options, (socket) => {
    sockets.push(socket);
    onSocket(socket.on("error", () => {}));
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** The error of dialling a server with this certificate, which must carry NAME. */
async function refusalOf(options: TlsOptions): Promise<string> {
  const tls = new UpstreamTls({ ca: authority.cert, serverName: NAME });
  const port = await listen(options);
  const startedMs = performance.now();
  const error = await dial({ host: "127.0.0.1", port, tls }, { dialTimeoutMs: 10_000 }).then(
    (socket) => {
      socket.destroy();
      return undefined;
    },
    (failure: Error & { code?: string }) => failure,
  );
  expect(performance.now() - startedMs).toBeLessThan(9_000);
  if (error === undefined) return "accepted";
  expect(error.code).toBe("dial-failed");
  expect(error.message.length).toBeLessThan(MAX_TOLD_CHARACTERS);
  const honest = await listen(await issueCertificate({}, authority, { names: [NAME] }));
  (await dial({ host: "127.0.0.1", port: honest, tls })).destroy();
  return error.message;
}

const UNVERIFIED = "tls: failed to verify certificate: x509:";
const CASES: Record<string, readonly [string, IssueOptions]> = {
  expired: [
    `${UNVERIFIED} certificate has expired or is not yet valid`,
    { notAfter: new Date(Date.now() - DAY_MS) },
  ],
  "not valid yet": [
    `${UNVERIFIED} certificate has expired or is not yet valid`,
    { notBefore: new Date(Date.now() + DAY_MS) },
  ],
  "for another name": [
    `${UNVERIFIED} certificate is valid for a.example, not ${NAME}`,
    { names: ["a.example"] },
  ],
  "for a wildcard of two labels": [
    `${UNVERIFIED} certificate is valid for *.*, not ${NAME}`,
    { names: ["*.*"] },
  ],
  "for 100 names": [
    `${UNVERIFIED} certificate is valid for 100 names, but none matched ${NAME}`,
    { names: manyNames(100) },
  ],
  "for 3,000 names": [
    `${UNVERIFIED} certificate is valid for 3000 names, but none matched ${NAME}`,
    { names: manyNames(3_000) },
  ],
  "for a few very long names": [
    `${UNVERIFIED} certificate is valid for 99 names, but none matched ${NAME}`,
    { names: manyNames(99).map((name) => `${"x".repeat(60)}.${"y".repeat(60)}.${name}`) },
  ],
  "of a client": [
    `${UNVERIFIED} certificate specifies an incompatible key usage`,
    { names: [NAME], usage: "client" },
  ],
};

it.each(Object.keys(CASES))("a certificate %s is refused in few words", async (name) => {
  const [text, options] = CASES[name] as (typeof CASES)[string];
  expect(await refusalOf(await issueCertificate({}, authority, options))).toBe(text);
});

it("a name in the subject alone counts, as it does in Node, and to no Go client", async () => {
  const certificate = await issueCertificate({ commonName: NAME }, authority);
  expect(await refusalOf(certificate)).toBe("accepted");
});

it.each([
  [50, "accepted"],
  [110, /^tls: failed to verify certificate: x509: /],
] as const)("a chain of %d certificates is decided on at once", async (length, text) => {
  let issuer = authority;
  let chain = "";
  for (let index = 0; index < length; index++) {
    issuer = await issueCertificate({ commonName: `a${index}` }, issuer, { isAuthority: true });
    chain = `${issuer.cert}\n${chain}`;
  }
  const { cert, key } = await issueCertificate({}, issuer, { names: [NAME] });
  expect(await refusalOf({ cert: `${cert}\n${chain}`, key })).toMatch(text);
});

it("a chain of 100 KiB is refused", async () => {
  const { cert, key } = await issueCertificate({}, authority, { names: [NAME] });
  const chain = `${authority.cert}\n`.repeat(400);
  expect(await refusalOf({ cert: `${cert}\n${chain}`, key })).toBe("tls: excessive message size");
});

it.each(["TLSv1", "TLSv1.1"] as const)("%s is refused", async (version) => {
  const certificate = await issueCertificate({}, authority, { names: [NAME] });
  const old = { minVersion: version, maxVersion: version, ciphers: "ALL:@SECLEVEL=0" } as const;
  expect(await refusalOf({ ...certificate, ...old })).toMatch(
    /protocol version not supported|unsupported protocol/,
  );
});

it("a server that negotiates again and again is refused the first time, as by Go", async () => {
  const certificate = await issueCertificate({}, authority, { names: [NAME] });
  let done = 0;
  const asked = new Promise<Error | undefined>((resolve) => {
    void (async () => {
      const port = await listen({ ...certificate, maxVersion: "TLSv1.2" }, (socket) => {
        const again = (): void => {
          socket.renegotiate({}, (error) => {
            if (error === null) done += 1;
            if (error !== null || done === 20) resolve(error ?? undefined);
            else again();
          });
          socket.write("x");
        };
        socket.on("error", resolve);
        again();
      });
      const tls = new UpstreamTls({ ca: authority.cert, serverName: NAME });
      const socket = await dial({ host: "127.0.0.1", port, tls });
      onTestFinished(() => void socket.destroy());
      socket.resume();
    })();
  });
  expect(String(await asked)).toMatch(/no.renegotiation/i);
  expect(done).toBe(0);
});

it.each([
  "TLSv1.2",
  "TLSv1.3",
] as const)("a record of garbage over %s ends the connection, with its error", async (version) => {
  const certificate = await issueCertificate({}, authority, { names: [NAME] });
  const garbage = Buffer.concat([Buffer.from([0x17, 3, 3, 0, 20]), Buffer.alloc(20, 7)]);
  const server = createTcpServer((tcp) => {
    const options = { ...certificate, isServer: true, minVersion: version, maxVersion: version };
    const socket = new TLSSocket(
      tcp.on("error", () => {}),
      options,
    ).on("error", () => {});
    socket.on("data", () => tcp.write(garbage));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const proxy = await TunnelProxy.start();
  onTestFinished(async () => {
    server.close();
    await proxy.close();
  });
  const tls = new UpstreamTls({ ca: authority.cert, serverName: NAME });
  const endpoint = { host: "127.0.0.1", port: (server.address() as AddressInfo).port, tls };
  const through = { endpoint: { host: "127.0.0.1", port: proxy.port }, authorization: undefined };
  for (const connected of [
    dial(endpoint),
    dial(endpoint, { reusesReads: true }),
    connectThroughProxy(through, endpoint, {}),
  ]) {
    const socket = await connected;
    socket.resume();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.write("x");
    await Promise.race([closed, delay(5_000)]);
    expect([socket.destroyed, socket.errored?.message]).toEqual([
      true,
      expect.stringMatching(/SSL|bad record|AAD/i),
    ]);
  }
});
