import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../src/standin/self-signed.ts";
import { withReusedReads } from "../../src/streaming/accepted-socket.ts";
import { feed } from "../../src/streaming/feed.ts";
import type { Leg } from "../../src/streaming/leg.ts";

const UPGRADE = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";

let server: Server | undefined;
const sockets: Duplex[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  server = undefined;
});

/** A client, and the accepted side of its upgrade as the gateway has it: paused, with what came early. */
async function upgraded(early = ""): Promise<{ client: Socket; accepted: Leg }> {
  server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const upgrade = once(server, "upgrade");
  const client = connect({
    port: (server.address() as AddressInfo).port,
    host: "127.0.0.1",
    allowHalfOpen: true,
  });
  sockets.push(client);
  client.write(UPGRADE + early);
  const [, socket, head] = (await upgrade) as [unknown, Socket, Buffer];
  socket.allowHalfOpen = true;
  socket.pause();
  sockets.push(socket);
  return { client, accepted: { socket, head } };
}

describe("an accepted socket that reads into reused memory", () => {
  it("is another socket on the same connection, and carries every byte both ways under backpressure", async () => {
    const { client, accepted } = await upgraded();
    const leg = withReusedReads(accepted);
    expect(leg.socket).not.toBe(accepted.socket);
    expect((leg.socket as Socket).remotePort).toBe((client.address() as AddressInfo).port);
    feed(leg.socket, leg.socket, (chunk) => leg.socket.write(chunk));

    const sent = Buffer.from(
      Array.from({ length: 8 * 1024 * 1024 }, (_, index) => (index * 31 + (index >> 12)) & 255),
    );
    const echoed: Buffer[] = [];
    leg.socket.once("end", () => leg.socket.end());
    client.end(sent);
    // Nothing is read for a while, so that both directions fill up.
    await expect.poll(() => leg.socket.writableNeedDrain).toBe(true);
    client.on("data", (chunk: Buffer) => void echoed.push(chunk));
    await once(client, "end");
    expect(Buffer.concat(echoed).equals(sent)).toBe(true);
  });

  it("hands over what came early", async () => {
    const { client, accepted } = await upgraded("first ");
    client.write("second");
    const bytes: Buffer[] = [];
    // The rest is in Node's buffer before the hand-over: a paused socket still takes one read.
    await expect
      .poll(() => accepted.socket.readableLength + accepted.head.byteLength)
      .toBe("first second".length);
    const leg = withReusedReads(accepted);
    bytes.push(Buffer.from(leg.head));
    leg.socket.on("data", (chunk: Buffer) => void bytes.push(Buffer.from(chunk)));
    leg.socket.resume();
    client.end(" third");
    await once(leg.socket, "end");
    expect(Buffer.concat(bytes).toString()).toBe("first second third");
  });

  it("sees the end of a client that had ended before", async () => {
    const { client, accepted } = await upgraded();
    client.end();
    accepted.socket.resume();
    await once(accepted.socket, "end");
    const { socket } = withReusedReads(accepted);
    socket.on("data", () => {});
    socket.resume();
    await once(socket, "end");
    socket.end("answer");
    const [answer] = await once(client, "data");
    expect(String(answer)).toBe("answer");
  });

  it.each([
    "the new socket",
    "the accepted one",
  ])("lets the server close once %s is destroyed", async (which) => {
    const { client, accepted } = await upgraded();
    const { socket } = withReusedReads(accepted);
    const closes = Promise.all([once(socket, "close"), once(accepted.socket, "close")]);
    client.on("error", () => {});
    (which === "the new socket" ? socket : accepted.socket).destroy();
    await closes;
    client.destroy();
    const closing = server as Server;
    server = undefined;
    await new Promise<void>((resolve, reject) =>
      closing.close((error) => (error ? reject(error) : resolve())),
    );
  });

  it("leaves TLS, destroyed sockets and sockets with something to send alone", async () => {
    const { accepted } = await upgraded();
    accepted.socket.destroy();
    expect(withReusedReads(accepted)).toBe(accepted);

    const { certPem: cert, keyPem: key } = await createSelfSignedCertificate();
    const secure = createHttpsServer({ cert, key });
    secure.listen(0, "127.0.0.1");
    await once(secure, "listening");
    const upgrade = once(secure, "upgrade");
    const { port } = secure.address() as AddressInfo;
    const client = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
    sockets.push(client);
    client.write(UPGRADE);
    const [, socket, head] = (await upgrade) as [unknown, Socket, Buffer];
    sockets.push(socket);
    const leg = { socket, head };
    expect(withReusedReads(leg)).toBe(leg);
    secure.close();
  });
});
