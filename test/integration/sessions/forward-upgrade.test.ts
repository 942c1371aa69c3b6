import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { headerListOf } from "../../../packages/client/src/http/header-list.ts";
import { SessionClock } from "../../../packages/client/src/net/session-clock.ts";
import type { UpgradedConnection } from "../../../packages/client/src/net/upgraded-connection.ts";
import type { UpstreamError } from "../../../packages/client/src/net/upstream-error.ts";
import { forwardUpgrade } from "../../../src/http/upgrade/forward-upgrade.ts";
import { Relay } from "../../../src/sessions/carriers/relay.ts";
import { PendingClient } from "../../../src/sessions/incoming-request.ts";
import { SessionLifecycle } from "../../../src/sessions/lifecycle.ts";
import { Sessions } from "../../../src/sessions/sessions.ts";
import { defaultTimeouts } from "../../support/default-configuration.ts";
import {
  afterHead,
  answering,
  closeServer,
  listen,
  listenRaw,
  openClient,
  openSocketCount,
  type RawUpstream,
  readToEnd,
  until,
} from "../../support/http/loopback.ts";

const clock = new SessionClock();
const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  await until(() => openSocketCount() === 0, "all sockets closed");
});

interface UpgradePair {
  readonly node: RawUpstream;
  readonly port: number;
  readonly errors: UpstreamError[];
}

/** As the gateway carries what it passes through. */
function relay(downstream: UpgradedConnection, upstream: UpgradedConnection): void {
  const timeouts = { ...defaultTimeouts, lingerIdleMs: 1_000, lingerMaxMs: 5_000 };
  const life = new SessionLifecycle({ clock, sessions: new Sessions(1) }, timeouts, {});
  life.carry([downstream.socket, upstream.socket], () => new Relay(downstream, upstream, life));
  expect(life.upstreamBytes).toBe(downstream.head.byteLength);
  downstream.socket.resume();
  upstream.socket.resume();
}

async function start(onConnection: (socket: Socket) => void): Promise<UpgradePair> {
  const node = await listenRaw(onConnection);
  const errors: UpstreamError[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer();
  server.on("connection", (socket) => sockets.add(socket));
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const client = new PendingClient(socket, head);
    forwardUpgrade(client, {
      endpoint: { host: "127.0.0.1", port: node.port },
      method: request.method ?? "GET",
      path: request.url ?? "/",
      headers: headerListOf(request.rawHeaders),
      carry: relay,
    }).catch((error: UpstreamError) => {
      errors.push(error);
      client.release();
      socket.end(`HTTP/1.1 500 ${error.code}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      socket.resume();
    });
  });
  const port = await listen(server);
  cleanups.push(() => closeServer(server, sockets), node.close);
  return { node, port, errors };
}

const upgrade = (protocol = "SPDY/3.1", method = "POST", more = ""): string =>
  `${method} /exec?x=1 HTTP/1.1\r\nHost: api\r\nX-A: 1\r\nx-a: 2\r\nConnection: Upgrade, X-Gone\r\nX-Gone: 1\r\nUpgrade: ${protocol}\r\n${more}\r\n`;
const switched = (protocol: string): string =>
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nupGRADE: ${protocol}\r\nX-Z: 1\r\nx-z: 2\r\n\r\n`;

describe("forwardUpgrade: a 101", () => {
  for (const [protocol, method] of [
    ["SPDY/3.1", "POST"],
    ["SPDY/3.1", "GET"],
    ["websocket", "GET"],
  ] as const) {
    it(`carries head bytes and data both ways for ${method} ${protocol} (TestProxyUpgrade)`, async () => {
      const { node, port } = await start((socket) => {
        afterHead(socket, () => {
          socket.write(`${switched(protocol)}early-down`);
          socket.pipe(socket);
        });
      });
      const client = await openClient(port);
      let received = "";
      client.on("data", (chunk) => {
        received += chunk;
      });
      client.write(`${upgrade(protocol, method)}early-up`);
      await until(() => received.endsWith("early-up"), "early bytes echoed");
      client.write("later");
      await until(() => received.endsWith("later"), "later bytes echoed");
      expect(received).toBe(`${switched(protocol)}early-downearly-uplater`);
      expect(node.received()).toContain(`${method} /exec?x=1 HTTP/1.1\r\nHost: api\r\nX-A: 1\r\nx-a: 2\r\n`);
      expect(node.received()).toContain(`Connection: Upgrade\r\nUpgrade: ${protocol}\r\n`);
      expect(node.received()).not.toContain("X-Gone");
      client.destroy();
    });
  }

  it("keeps a half-close: the other direction goes on", async () => {
    const { port } = await start((socket) => {
      afterHead(socket, () => {
        socket.write(switched("SPDY/3.1"));
        socket.on("end", () => socket.end("after your end"));
      });
    });
    const client = await openClient(port);
    client.write(upgrade());
    await new Promise((resolve) => client.once("data", resolve));
    client.end("bye");
    expect((await readToEnd(client)).text).toMatch(/after your end$/);
  });

  it("carries a reset of the upstream to the client, and of the client to the upstream", async () => {
    const { node, port } = await start(answering(switched("SPDY/3.1")));
    const first = await openClient(port);
    first.write(upgrade());
    await new Promise((resolve) => first.once("data", resolve));
    node.sockets[0]?.resetAndDestroy();
    await readToEnd(first);

    const second = await openClient(port);
    second.write(upgrade());
    await new Promise((resolve) => second.once("data", resolve));
    second.resetAndDestroy();
    await until(
      () => node.sockets[1]?.readableEnded === true || node.sockets[1]?.destroyed === true,
      "closed",
    );
  });
});

describe("forwardUpgrade: anything but a fitting 101", () => {
  for (const [name, answer, body] of [
    ["with a length", "HTTP/1.1 403 Forbidden\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 4\r\n\r\nnope", "nope"],
    [
      "in chunks",
      "HTTP/1.1 403 Forbidden\r\nX-A: 1\r\nx-a: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n2\r\npe\r\n0\r\n\r\n",
      "nope",
    ],
  ] as const) {
    it(`copies a refusal ${name} and closes; a pipelined request goes nowhere (TestProxyUpgradeErrorResponseTerminates)`, async () => {
      const { node, port } = await start(answering(answer));
      const client = await openClient(port);
      client.write(`${upgrade()}GET /secret HTTP/1.1\r\nHost: api\r\n\r\n`);
      const { text, isClean } = await readToEnd(client);
      expect(text).toMatch(/^HTTP\/1\.1 403 Forbidden\r\nX-A: 1\r\nx-a: 2\r\n/);
      expect(text).toMatch(/\r\nContent-Length: 4\r\n/);
      expect(text).toMatch(/\r\nConnection: close\r\n/);
      expect(text).not.toContain("Transfer-Encoding");
      expect(text.endsWith(`\r\n\r\n${body}`)).toBe(true);
      expect(isClean).toBe(true);
      expect(node.received()).not.toContain("/secret");
      expect(node.sockets).toHaveLength(1);
    });
  }

  it("breaks the client's connection when a refusal is cut short", async () => {
    const { port } = await start((socket) =>
      afterHead(socket, () => socket.end("HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\nabc")),
    );
    const client = await openClient(port);
    client.write(upgrade());
    const { text } = await readToEnd(client);
    expect(text).not.toMatch(/abc[\s\S]*HTTP/);
    expect(text.length === 0 || text.includes("Content-Length: 9")).toBe(true);
  });

  for (const status of [200, 300, 302, 307]) {
    it(`neither follows nor relays ${status} (TestProxyUpgradeErrorResponse)`, async () => {
      const { node, port, errors } = await start(
        answering(`HTTP/1.1 ${status} X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n`),
      );
      const client = await openClient(port);
      client.write(upgrade());
      const { text } = await readToEnd(client);
      expect(text).not.toContain("Location");
      expect(errors[0]?.message).toBe(`invalid upgrade response: status code ${status}`);
      await until(() => node.sockets[0]?.readableEnded === true, "upstream closed");
    });
  }

  for (const [name, answer] of [
    ["another protocol", switched("websocket")],
    ["no protocol", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
  ] as const) {
    it(`lays no pipe behind a 101 that names ${name}`, async () => {
      const { port, errors } = await start(answering(answer));
      const client = await openClient(port);
      client.write(upgrade());
      await readToEnd(client);
      expect(errors[0]?.code).toBe("upgrade-mismatch");
    });
  }

  for (const protocol of ["h2c", "websocket, SPDY/3.1", "TLS/1.0", "SPDY/3.1x"]) {
    it(`refuses to ask for ${protocol}`, async () => {
      const { node, port, errors } = await start(() => {});
      const client = await openClient(port);
      client.write(upgrade(protocol));
      await readToEnd(client);
      expect(errors[0]?.code).toBe("upgrade-refused");
      expect(node.sockets).toHaveLength(0);
    });
  }

  it("refuses an upgrade with a body", async () => {
    const { node, port, errors } = await start(() => {});
    const client = await openClient(port);
    client.write(upgrade("websocket", "POST", "Content-Length: 5\r\n"));
    await readToEnd(client);
    expect(errors[0]?.code).toBe("invalid-request");
    expect(node.sockets).toHaveLength(0);
  });

  it("reports an upstream that refuses connections (TestProxyUpgradeConnectionErrorResponse)", async () => {
    const { node, port, errors } = await start(() => {});
    await node.close();
    const client = await openClient(port);
    client.write(upgrade());
    await readToEnd(client);
    expect(errors[0]?.message).toBe(`dial tcp 127.0.0.1:${node.port}: connect: connection refused`);
  });

  for (const how of ["destroy", "resetAndDestroy", "end"] as const) {
    it(`closes the upstream at once when the client leaves before the 101 (${how})`, async () => {
      const { node, port, errors } = await start(() => {});
      const client = await openClient(port);
      client.write(upgrade());
      await until(() => node.received().includes("\r\n\r\n"), "request received");
      client[how]();
      await until(
        () => node.sockets[0]?.readableEnded === true || node.sockets[0]?.destroyed === true,
        "closed",
      );
      expect(errors[0]?.code).toBe("aborted");
      client.destroy();
    });
  }
});
