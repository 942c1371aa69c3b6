import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import {
  checkClientHandshake,
  checkServerHandshake,
  encodeSwitchingProtocols,
  negotiateSubprotocol,
} from "../../../../protocols/websocket/index.ts";
import { acceptOf, echoOn } from "./echo-endpoint.ts";

/** One message that the `ws` side sends: its fragments, with a ping before each. */
interface Message {
  readonly isText: boolean;
  readonly fragments: readonly Uint8Array[];
}

const messages: fc.Arbitrary<Message> = fc.record({
  isText: fc.boolean(),
  fragments: fc.array(
    fc.oneof(
      fc.uint8Array({ maxLength: 300 }).map((bytes) => bytes.map((byte) => byte & 0x7f)),
      fc.integer({ min: 60_000, max: 200_000 }).map((length) => new Uint8Array(length).fill(0x61)),
    ),
    { minLength: 1, maxLength: 4 },
  ),
});

/** Sends everything from the `ws` side and collects what comes back from ours. */
async function echoesOf(
  peer: WebSocket,
  sent: readonly Message[],
): Promise<{ echoes: string[]; pongs: string[] }> {
  const echoes: string[] = [];
  const pongs: string[] = [];
  peer.on("message", (data: Buffer, isBinary: boolean) => echoes.push(fingerprint(!isBinary, data)));
  peer.on("pong", (payload: Buffer) => pongs.push(payload.toString()));
  sent.forEach(({ isText, fragments }, message) => {
    fragments.forEach((fragment, at) => {
      peer.ping(`${message}.${at}`);
      peer.send(fragment, { binary: !isText, fin: at === fragments.length - 1, compress: false });
    });
  });
  const closed = once(peer, "close");
  peer.close(4321, "that was all €");
  const [code, reason] = (await closed) as [number, Buffer];
  expect([code, reason.toString()]).toEqual([4321, "that was all €"]);
  return { echoes, pongs };
}

function fingerprint(isText: boolean, bytes: Uint8Array): string {
  return `${isText ? "text" : "binary"} ${Buffer.from(bytes).toString("base64")}`;
}

function expected(sent: readonly Message[]): { echoes: string[]; pongs: string[] } {
  return {
    echoes: sent.map(({ isText, fragments }) => fingerprint(isText, Buffer.concat(fragments))),
    pongs: sent.flatMap(({ fragments }, message) => fragments.map((_, at) => `${message}.${at}`)),
  };
}

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function listen(server: ReturnType<typeof createServer>): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  return (server.address() as AddressInfo).port;
}

describe("over real sockets", () => {
  it("as server, echoes to a ws client", async () => {
    const server = createServer();
    server.on("upgrade", (upgrade: IncomingMessage, socket: Duplex) => {
      const handshake = checkServerHandshake({
        method: upgrade.method ?? "",
        rawHeaders: upgrade.rawHeaders,
      });
      if (!handshake.ok) throw new Error(handshake.body);
      const subprotocol = negotiateSubprotocol(handshake.protocols, ["v4.channel.k8s.io", ""]);
      socket.write(encodeSwitchingProtocols(acceptOf(handshake.key), subprotocol));
      echoOn(socket, "server");
    });
    const port = await listen(server);
    await fc.assert(
      fc.asyncProperty(fc.array(messages, { maxLength: 6 }), fc.boolean(), async (sent, hasProtocols) => {
        const protocols = hasProtocols ? ["v5.channel.k8s.io", "v4.channel.k8s.io"] : [];
        const peer = new WebSocket(`ws://127.0.0.1:${port}/`, protocols, { perMessageDeflate: false });
        await once(peer, "open");
        expect(peer.protocol).toBe(hasProtocols ? "v4.channel.k8s.io" : "");
        expect(await echoesOf(peer, sent)).toEqual(expected(sent));
      }),
      { numRuns: 15 },
    );
  });

  it("as client, echoes to a ws server", async () => {
    const server = createServer();
    const acceptor = new WebSocketServer({
      server,
      handleProtocols: (offered) => [...offered].at(-1) ?? false,
    });
    const port = await listen(server);
    await fc.assert(
      fc.asyncProperty(fc.array(messages, { maxLength: 6 }), async (sent) => {
        const peerOpen = once(acceptor, "connection") as Promise<[WebSocket]>;
        const key = "dGhlIHNhbXBsZSBub25jZQ==";
        const upgrade = request({
          port,
          host: "127.0.0.1",
          headers: {
            Connection: "Upgrade",
            Upgrade: "websocket",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": "a, b",
          },
        });
        upgrade.end();
        const [response, socket, head] = (await once(upgrade, "upgrade")) as [
          IncomingMessage,
          Duplex,
          Buffer,
        ];
        const { statusCode: status = 0, statusMessage: statusText = "", rawHeaders } = response;
        const offer = { accept: acceptOf(key), protocols: ["a", "b"] };
        expect(checkClientHandshake({ status, statusText, rawHeaders }, offer)).toEqual({
          ok: true,
          subprotocol: "b",
        });
        const decoder = echoOn(socket, "client");
        if (head.length > 0) decoder.push(head);
        const [peer] = await peerOpen;
        expect(await echoesOf(peer, sent)).toEqual(expected(sent));
      }),
      { numRuns: 15 },
    );
  });
});
