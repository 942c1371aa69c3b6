import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { connect, type Socket } from "node:net";
import path from "node:path";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { AccessGateway } from "../../support/access-gateway.ts";
import { type SignedCertificate, signedCertificate } from "../../support/der-certificate.ts";
import { eventually } from "../../support/eventually.ts";
import { PREFACE } from "../../support/frame-peer.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { listenRaw } from "../../support/http/loopback.ts";
import { ADMIN_TOKEN, RuntimeNode } from "../../support/runtime-node.ts";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";
import {
  clientHello,
  extension,
  plainRecord,
  RecordClient,
  serverName,
  TYPE,
} from "../../support/tls-records.ts";

const timeouts = {
  handshake: "1s",
  requestBody: "300ms",
  keepAlive: "1s",
  streamIdle: "300ms",
  idle: "1s",
  shutdownGracePeriod: "0s",
};
const LONG_MS = 30_000;
/** More than the noise of all processes, and less than an attack that is kept in memory. */
const MAX_GROWTH_BYTES = 200 * 1024 * 1024;

interface Target {
  readonly port: number;
  readonly path: string;
  readonly token: string;
}

const targets: Record<string, Target> = {};
const stops: (() => unknown)[] = [];
const logs: (() => readonly string[])[] = [];
const unhandled: unknown[] = [];
const note = (reason: unknown): number => unhandled.push(reason);
let users: SignedCertificate;
let large: SignedCertificate;

beforeAll(async () => {
  users = signedCertificate({ commonName: "users", isAuthority: true });
  large = signedCertificate(
    {
      commonName: "large",
      names: Array.from({ length: 10_000 }, (_, index) => `name-${index}.example`),
    },
    users,
  );
  const server = await issueCertificate({ commonName: "node" });
  const api = await AccessGateway.start((folder) => {
    writeFileSync(path.join(folder, "users.crt"), users.cert);
    writeFileSync(path.join(folder, "tokens.csv"), "t,ann,1\n");
    return { authentication: { clientCAFile: "users.crt", tokenAuthFile: "tokens.csv" }, timeouts };
  });
  writeFileSync(path.join(api.folder, "node.crt"), server.cert);
  writeFileSync(path.join(api.folder, "node.key"), server.key);
  writeFileSync(path.join(api.folder, "node-tokens.csv"), `${ADMIN_TOKEN},node-admin,1\n`);
  const [certFile, keyFile] = ["node.crt", "node.key"].map((name) => path.join(api.folder, name));
  const node = await RuntimeNode.start({
    listener: {
      tls: { certFile, keyFile },
      authentication: {
        clientCAFile: path.join(api.folder, "users.crt"),
        tokenAuthFile: path.join(api.folder, "node-tokens.csv"),
      },
    },
    more: { timeouts },
  });
  const pod = await listenRaw((socket) =>
    socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")),
  );
  const door = await FrontDoor.start(
    [...serviceObjects("app", [pod]), ingressObject("all", { defaultBackend: backend("app") })],
    {},
    { timeouts },
  );
  await door.serves(1);
  stops.push(
    () => api.stop(),
    () => node.stop(),
    () => door.stop(),
    () => pod.close(),
  );
  logs.push(
    () => api.logLines,
    () => node.logLines,
    () => door.logged,
  );
  Object.assign(targets, {
    API: { port: Number(api.authority.split(":")[1]), path: "/api/v1/namespaces/default/pods", token: "t" },
    kubelet: { port: Number(node.authority.split(":")[1]), path: "/pods", token: ADMIN_TOKEN },
    "front door's": { port: door.httpsPort, path: "/", token: "t" },
  });
  process.on("unhandledRejection", note).on("uncaughtExceptionMonitor", note);
});
afterEach(() => expect(unhandled).toEqual([]));
afterAll(async () => {
  process.off("unhandledRejection", note).off("uncaughtExceptionMonitor", note);
  for (const stop of stops) await stop();
});

interface Attack {
  open(): Socket;
  openTls(options?: ConnectionOptions): TLSSocket;
  readonly target: Target;
}
type Act = (attack: Attack) => unknown;

const request = ({ path: target, token }: Target, ...more: string[]): string =>
  [`GET ${target} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`, ...more, "", ""].join(
    "\r\n",
  );

/** Sends this and waits for the end that the server makes. */
const sends =
  (bytes: () => Uint8Array): Act =>
  ({ open }) =>
    void open().resume().write(bytes());

/** Sends this over TLS with these options. */
const says =
  (options: ConnectionOptions, bytes: (target: Target) => string | Uint8Array): Act =>
  ({ openTls, target }) => {
    const socket = openTls(options);
    socket.resume().write(bytes(target));
  };

async function records(port: number, act: (client: RecordClient) => Promise<void>): Promise<void> {
  const client = await RecordClient.open(port);
  onTestFinished(() => void client.socket.destroy());
  await act(client);
  await eventually("its end", () => client.socket.destroyed || client.socket.readableEnded, {
    timeoutMs: LONG_MS,
  });
}

const certified =
  (certificate: () => TestCertificate): Act =>
  (attack) => {
    const { cert, key } = certificate();
    says({ cert, key }, (target) => request(target))(attack);
  };

function chainOf(length: number): TestCertificate {
  let issuer = users;
  const chain: string[] = [];
  for (let index = 0; index < length; index++) {
    issuer = signedCertificate({ commonName: `a${index}`, isAuthority: true }, issuer);
    chain.unshift(issuer.cert);
  }
  const { cert, key } = signedCertificate({ commonName: "chained" }, issuer);
  return { cert: [cert, ...chain].join(""), key };
}

const ACTS: Readonly<Record<string, Act>> = {
  "a ClientHello byte by byte": ({ open }) => {
    const socket = open().resume();
    const hello = clientHello();
    let sent = 0;
    const timer = setInterval(() => socket.write(hello.subarray(sent, ++sent)), 20);
    socket.once("close", () => clearInterval(timer));
    onTestFinished(() => clearInterval(timer));
  },
  "half a ClientHello": sends(() => clientHello().subarray(0, 60)),
  "1,000 ClientHellos, each abandoned behind its ServerHello": async ({ open }) => {
    for (let round = 0; round < 20; round++) {
      const sockets = Array.from({ length: 50 }, () => open());
      await Promise.all(
        sockets.map(async (socket, index) => {
          socket.resume().write(clientHello());
          await once(socket, "data");
          if (index % 2 === 0) socket.resetAndDestroy();
          else socket.destroy();
        }),
      );
    }
  },
  "200 ClientHellos, and nothing more": ({ open }) => {
    for (let index = 0; index < 200; index++) open().resume().write(clientHello());
  },
  "1,000 renegotiations": async ({ openTls }) => {
    const socket = openTls({ maxVersion: "TLSv1.2" });
    await once(socket.resume(), "secureConnect");
    for (let index = 0; index < 1_000 && !socket.destroyed; index++) {
      await new Promise<void>((resolve) => {
        socket.once("close", () => resolve());
        if (socket.renegotiate({}, () => resolve()) !== true) resolve();
      });
    }
  },
  "10,000 KeyUpdates": ({ target }) =>
    records(target.port, async (client) => {
      for (let round = 0; round < 100 && !client.socket.destroyed; round++)
        await client.write(Buffer.concat(Array.from({ length: 100 }, () => client.keyUpdate(true))));
    }),
  "200,000 empty records": ({ target }) =>
    records(target.port, async (client) => {
      for (let round = 0; round < 200 && !client.socket.destroyed; round++)
        await client.write(
          Buffer.concat(Array.from({ length: 1_000 }, () => client.record(TYPE.data, Buffer.alloc(0)))),
        );
    }),
  "empty records for a handshake": sends(() =>
    Buffer.concat(new Array<Buffer>(10_000).fill(plainRecord(TYPE.handshake, Buffer.alloc(0)))),
  ),
  "warnings for a handshake": sends(() =>
    Buffer.concat([
      clientHello(),
      ...new Array<Buffer>(10_000).fill(plainRecord(TYPE.alert, Buffer.of(1, 100))),
    ]),
  ),
  "ClientHellos in place of requests": ({ target }) =>
    records(target.port, async (client) => {
      await client.write(client.record(TYPE.handshake, clientHello().subarray(5)));
    }),
  "early data": sends(() =>
    Buffer.concat([
      clientHello(extension(42, Buffer.alloc(0))),
      ...new Array<Buffer>(100).fill(plainRecord(TYPE.data, Buffer.alloc(16_000))),
    ]),
  ),
  "a server's name of 65,000 bytes": sends(() => clientHello(serverName(Buffer.alloc(65_000, 0x61)))),
  "a server's name of no bytes": sends(() => clientHello(serverName(Buffer.alloc(0)))),
  "a server's name with NUL": sends(() => clientHello(serverName(Buffer.from("a\0b")))),
  "a server's name that is no UTF-8": sends(() => clientHello(serverName(Buffer.alloc(200, 0xfe)))),
  "two servers' names": sends(() => clientHello(serverName(Buffer.from("a")), serverName(Buffer.from("b")))),
  ...Object.fromEntries(
    ["__proto__", "constructor", "*", "..", "a..b", "-", "[::1]", "a".repeat(255)].map((name) => [
      `the server's name ${name.slice(0, 12)}`,
      says({ servername: name }, (target) => request(target)),
    ]),
  ),
  "HTTP/1.1 where h2 was agreed on": says({ ALPNProtocols: ["h2"] }, (target) => request(target)),
  "HTTP/2 where http/1.1 was agreed on": says({ ALPNProtocols: ["http/1.1"] }, () => PREFACE),
  "HTTP/2 where nothing was agreed on": says({}, () => PREFACE),
  "protocols that nobody knows": says({ ALPNProtocols: ["spdy/9", "x"] }, (target) => request(target)),
  "10,000 protocols": sends(() =>
    clientHello(
      extension(16, Buffer.concat([Buffer.of(0x4e, 0x20), Buffer.alloc(20_000).fill(Buffer.of(1, 0x78))])),
    ),
  ),
  "protocols whose lengths lie": sends(() => clientHello(extension(16, Buffer.of(0, 9, 200, 1, 2)))),
  "a certificate of 10,000 names": certified(() => large),
  "a certificate and 1 MiB of others": certified(() => ({
    ...large,
    cert: Array.from({ length: 5 }, () => large.cert).join(""),
  })),
  "a chain of 100 certificates": certified(() => chainOf(100)),
  "a certificate with NUL in its name": certified(() =>
    signedCertificate({ commonName: "ann\0.admin" }, users),
  ),
  "a request, then close_notify": ({ openTls, target }) => {
    openTls().resume().end(request(target));
  },
  "300 requests, then close_notify": ({ openTls, target }) => {
    openTls().resume().end(request(target).repeat(300));
  },
};

async function honest({ port, path: target, token }: Target): Promise<number | undefined> {
  const headers = { Authorization: `Bearer ${token}`, Connection: "close" };
  const asked = get({
    port,
    host: "127.0.0.1",
    path: target,
    headers,
    rejectUnauthorized: false,
    agent: false,
  });
  const [response] = await once(asked, "response");
  await once(response.resume(), "end");
  return response.statusCode;
}

/** Both ends of connections to the front door's backend, which it keeps for later requests. */
const KEPT_ENDS = 8;
const descriptors = (): number => readdirSync("/proc/self/fd").length;

describe.each(["API", "kubelet", "front door's"])("the %s TLS listener lives on, and lets go of", (name) => {
  it.each(Object.keys(ACTS))("%s", { timeout: 3 * LONG_MS }, async (what) => {
    const target = targets[name] as Target;
    expect(await honest(target)).toBe(200);
    const before = descriptors();
    const beforeBytes = process.memoryUsage().rss;
    const clients: Socket[] = [];
    const open = (): Socket => {
      const socket = connect({ port: target.port, host: "127.0.0.1", allowHalfOpen: false });
      socket.on("error", () => {});
      clients.push(socket);
      onTestFinished(() => void socket.destroy());
      return socket;
    };
    const openTls = (options: ConnectionOptions = {}): TLSSocket => {
      const socket = connectTls({ socket: open(), rejectUnauthorized: false, ...options });
      return socket.on("error", () => {});
    };
    const attacked = ACTS[what]?.({ target, open, openTls });
    expect(await honest(target)).toBe(200);
    await attacked;
    expect(await honest(target)).toBe(200);
    const own = (): number => clients.filter(({ destroyed }) => !destroyed).length;
    const ends = () => `${descriptors() - before} descriptors of ${clients.length} clients`;
    await eventually(ends, () => descriptors() <= before + own() + KEPT_ENDS, { timeoutMs: LONG_MS });
    expect(process.memoryUsage().rss - beforeBytes).toBeLessThan(MAX_GROWTH_BYTES);
    const faults = logs.flatMap((lines) =>
      lines().filter((line) => /"level":(?:50|60)|internal error/.test(line)),
    );
    expect(faults).toEqual([]);
  });
});
