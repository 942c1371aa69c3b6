import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterEach, expect, it } from "vitest";
import { createHttp1Server } from "../../../../packages/client/src/http/downstream/http1-server.ts";
import { createSelfSignedCertificate } from "../../../../packages/client/src/net/self-signed.ts";
import { createSecureServer } from "../../../../src/ingress/secure-server.ts";
import { eventually } from "../../../support/eventually.ts";

/** The text of Go's servers. */
const PLAIN_HTTP_ANSWER = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

const servers: Server[] = [];
const { certPem: cert, keyPem: key } = await createSelfSignedCertificate();

afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

const KINDS = {
  listener: () =>
    createHttp1Server(
      { maxHeaderBytes: 16_384, headMs: 5_000, keepAliveMs: 5_000 },
      { onRequest: (_request, response) => response.end() },
      { tls: { cert, key } },
    ),
  "front door": () =>
    createSecureServer({
      defaultTls: { cert, key },
      certificatesFor: () => [],
      handshakeMs: 5_000,
      onSecure: (socket) => socket.end("secure"),
    }).server,
} as const;

async function start(kind: keyof typeof KINDS): Promise<{ server: Server; port: number }> {
  const server: Server = KINDS[kind]();
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: (server.address() as AddressInfo).port };
}

/** What is answered to a client that keeps its own side open. */
async function answerTo(port: number, text: string): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes.toString("latin1");
  });
  socket.on("error", () => {});
  const over = Promise.race([once(socket, "end"), once(socket, "close")]);
  socket.write(text, "latin1");
  await over;
  socket.destroy();
  return answer;
}

/** A client's first record, and behind it what is none. */
async function brokenHandshake(): Promise<string> {
  const captured = createServer().listen(0, "127.0.0.1");
  await once(captured, "listening");
  const client = connectTls({ port: (captured.address() as AddressInfo).port, host: "127.0.0.1" });
  client.on("error", () => {});
  const [socket] = (await once(captured, "connection")) as [Socket];
  const [hello] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  captured.close();
  return `${hello.toString("latin1")}GET / HTTP/1.1\r\n\r\n`;
}

const kinds = Object.keys(KINDS) as (keyof typeof KINDS)[];

it.each(kinds)("a %s tells plain HTTP on its TLS port so, and keeps nothing of it", async (kind) => {
  const { server, port } = await start(kind);
  const methods = ["GET", "POST", "HEAD", "PUT", "OPTIONS", "DELETE", "PATCH", "TRACE", "CONNECT", "LIST"];
  for (const method of methods) {
    const answer = await answerTo(port, `${method} / HTTP/1.1\r\nHost: a\r\n\r\n`);
    expect([method, answer]).toEqual([method, PLAIN_HTTP_ANSWER]);
  }
  for (const line of ["OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]) {
    expect(await answerTo(port, line)).toBe(PLAIN_HTTP_ANSWER);
  }
  await eventually("all are closed", async () => {
    const open = await new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
    return open === 0;
  });
});

it.each(
  kinds,
)("a %s answers no handshake that has begun, and survives clients that are gone", async (kind) => {
  const { port } = await start(kind);
  expect(await answerTo(port, await brokenHandshake())).not.toContain("HTTP");
  for (let round = 0; round < 20; round++) {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    await once(socket, "connect");
    socket.write("GET / HTTP/1.1\r\n\r\n", () => socket.resetAndDestroy());
    await once(socket, "close");
  }
  const secure = connectTls({ port, host: "127.0.0.1", ca: cert, servername: "localhost" });
  await once(secure, "secureConnect");
  secure.destroy();
});
