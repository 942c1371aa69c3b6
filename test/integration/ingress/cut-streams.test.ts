import { createHash } from "node:crypto";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../../support/eventually.ts";
import {
  FLAG,
  FRAME,
  type FrameBackend,
  type FrameClient,
  type FramePeer,
  openFrameClient,
  type SeenFrame,
  startFrameBackend,
} from "../../support/frame-peer.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { listenRaw, type RawUpstream } from "../../support/http/loopback.ts";
import { headerBlockOf } from "../../support/http2-frames.ts";

const HOSTS = { h1: "one.test", h2c: "two.test" } as const;
type Version = keyof typeof HOSTS;

let http1: RawUpstream;
let http2: FrameBackend;
let door: FrontDoor;
/** What the backends do with what comes to them, in the test that runs. */
let onHttp1: (socket: Socket) => void = () => {};
let onHttp2: (peer: FramePeer, frame: SeenFrame) => void = () => {};

beforeAll(async () => {
  http1 = await listenRaw((socket) => {
    socket.on("data", (chunk) => texts.set(socket, textOf(socket) + chunk.toString("latin1")));
    onHttp1(socket);
  });
  http2 = await startFrameBackend((peer, frame) => onHttp2(peer, frame));
  const rule = (host: string, service: string) => ({
    host,
    http: { paths: [{ path: "/", pathType: "Prefix", backend: backend(service) }] },
  });
  door = await FrontDoor.start([
    ...serviceObjects("one", [http1]),
    ...serviceObjects("two", [http2], { appProtocol: "kubernetes.io/h2c" }),
    ingressObject("both", { rules: [rule(HOSTS.h1, "one"), rule(HOSTS.h2c, "two")] }),
  ]);
  await door.serves(1);
});
afterAll(async () => {
  await door.stop();
  await Promise.all([http1.close(), http2.stop()]);
});
beforeEach(async () => {
  await forgetConnections();
  onHttp1 = () => {};
  onHttp2 = () => {};
});

/** What comes next meets a connection that nothing has used. */
async function forgetConnections(): Promise<void> {
  const sockets = [http1, http2].flatMap((upstream) => upstream.sockets.splice(0));
  http2.peers.splice(0);
  for (const socket of sockets) socket.end();
  // The gateway has noticed, and takes none of them for a request.
  await eventually("their end", () => sockets.every((socket) => socket.destroyed || socket.readableEnded));
}

const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
const acceptOf = (key: string): string =>
  createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");

const CLIENTS = ["in the clear", "over TLS"] as const;

async function openClient(where: (typeof CLIENTS)[number]): Promise<FrameClient> {
  const isSecure = where === "over TLS";
  return await openFrameClient(isSecure ? door.httpsPort : door.httpPort, isSecure);
}

function request(client: FramePeer, version: Version, method: "GET" | "POST", more = {}): void {
  const head = { ":method": method, ":scheme": "http", ":path": "/", ":authority": HOSTS[version], ...more };
  const flags = FLAG.endHeaders | (method === "GET" ? FLAG.endStream : 0);
  client.send(FRAME.headers, flags, 1, headerBlockOf(head));
}

/** How stream 1 was ended, once it was, and the other end has had the time to say more of it. */
async function endsOf(peer: FramePeer): Promise<string[]> {
  await eventually("the end of the stream", () => peer.endsOf(1).length > 0);
  await new Promise((resolve) => setTimeout(resolve, 30));
  return peer.endsOf(1);
}

const CUT = [expect.stringMatching(/^RST_STREAM (2|8)$/)];
const HEAD = "HTTP/1.1 200 OK\r\n";
const fin = (socket: Socket): void => void socket.end();
const rst = (socket: Socket): void => void socket.resetAndDestroy();

describe.each(CLIENTS)("an answer that an HTTP/1.1 backend cuts short, %s", (where) => {
  it.each<[string, string, (socket: Socket) => void]>([
    ["of a length, by FIN", "Content-Length: 100\r\n\r\nhalf", fin],
    ["of a length, by RST", "Content-Length: 100\r\n\r\nhalf", rst],
    ["in chunks, by FIN", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", fin],
    ["in chunks, by RST", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", rst],
    [
      "in chunks, by one that is none",
      "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
      (s) => s.write("zz"),
    ],
    ["in chunks, within the trailers", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\nX-Sum: ", fin],
    ["of no length, by RST", "\r\nhalf", rst],
  ])("%s: its stream is reset", async (_how, answer, cut) => {
    let backendSocket: Socket | undefined;
    onHttp1 = (socket) => {
      backendSocket = socket;
      socket.once("data", () => socket.write(HEAD + answer));
    };
    const client = await openClient(where);
    request(client, "h1", "GET");
    await eventually("the beginning", () => client.has(FRAME.data, 1));
    cut(backendSocket as Socket);
    expect(await endsOf(client)).toEqual(CUT);
  });
});

describe.each(CLIENTS)("an answer that an h2c backend cuts short, %s", (where) => {
  it.each<[string, (peer: FramePeer) => void]>([
    ["by RST_STREAM NO_ERROR", (peer) => peer.reset(1, 0)],
    ["by RST_STREAM INTERNAL_ERROR", (peer) => peer.reset(1, 2)],
    ["by RST_STREAM CANCEL", (peer) => peer.reset(1, 8)],
    ["by FIN", (peer) => fin(peer.socket as Socket)],
    ["by RST", (peer) => rst(peer.socket as Socket)],
    [
      "by GOAWAY and FIN",
      (peer) => {
        peer.goAway(1, 0);
        fin(peer.socket as Socket);
      },
    ],
    ["by GOAWAY for an error", (peer) => peer.goAway(1, 2)],
    ["by a frame that is none", (peer) => peer.send(FRAME.ping, 0, 0, Buffer.alloc(7))],
    ["by a header block that is none", (peer) => peer.send(FRAME.headers, 5, 1, Buffer.alloc(10, 0xff))],
  ])("%s: its stream is reset", async (_how, cut) => {
    for (const length of [{}, { "content-length": "100" }]) {
      await forgetConnections();
      let peer: FramePeer | undefined;
      onHttp2 = (from, { type }) => {
        if (type !== FRAME.headers) return;
        peer = from;
        from.send(FRAME.headers, FLAG.endHeaders, 1, headerBlockOf({ ":status": "200", ...length }));
        from.send(FRAME.data, 0, 1, Buffer.from("half"));
      };
      const client = await openClient(where);
      request(client, "h2c", "GET");
      await eventually("the beginning", () => client.has(FRAME.data, 1));
      cut(peer as FramePeer);
      expect(await endsOf(client)).toEqual(CUT);
    }
  });

  it("by less than its length: its stream is reset", async () => {
    onHttp2 = (peer, { type }) => {
      if (type !== FRAME.headers) return;
      const head = { ":status": "200", "content-length": "100" };
      peer.send(FRAME.headers, FLAG.endHeaders, 1, headerBlockOf(head));
      peer.send(FRAME.data, FLAG.endStream, 1, Buffer.from("half"));
    };
    const client = await openClient(where);
    request(client, "h2c", "GET");
    expect(await endsOf(client)).toEqual(CUT);
  });
});

const lastSocket = (): Socket | undefined => http1.sockets[http1.sockets.length - 1];
/** What came to HTTP/1.1's last connection. */
const texts = new WeakMap<Socket, string>();
const textOf = (socket: Socket | undefined): string => (socket && texts.get(socket)) ?? "";

/** What an upload's backend saw of it, once it is over. */
async function uploadAt(version: Version): Promise<string[]> {
  if (version === "h2c") {
    await eventually("the backend's connection", () => http2.peers.length > 0);
    return await endsOf(http2.peers[http2.peers.length - 1] as FramePeer);
  }
  const socket = lastSocket() as Socket;
  await eventually("the end of its connection", () => socket.readableEnded || socket.destroyed);
  return textOf(socket).endsWith("0\r\n\r\n") ? ["END_STREAM"] : ["RST_STREAM 8"];
}

const BODY = Buffer.alloc(10_000, "x");
const received = (version: Version): boolean =>
  version === "h2c"
    ? http2.peers[http2.peers.length - 1]?.bodyOf(1).length === BODY.length
    : /x{10000}(\r\n)?$/.test(textOf(lastSocket()));

describe.each(["h1", "h2c"] as const)("an upload to an %s backend that its client abandons", (version) => {
  for (const where of CLIENTS) {
    it.each<[string, (client: FrameClient) => void]>([
      ["by RST_STREAM CANCEL", (client) => client.reset(1, 8)],
      ["by RST_STREAM NO_ERROR", (client) => client.reset(1, 0)],
      ["by FIN", ({ raw }) => fin(raw)],
      ["by RST", ({ raw }) => rst(raw)],
      ["by a frame that is none", (client) => client.send(FRAME.ping, 0, 0, Buffer.alloc(7))],
      ["by a GOAWAY for an error", (client) => client.goAway(0, 2)],
    ])(`${where}, %s, does not end as a whole one does`, async (_how, abandon) => {
      for (const length of [{}, { "content-length": "50000" }]) {
        await forgetConnections();
        const client = await openClient(where);
        request(client, version, "POST", length);
        client.send(FRAME.data, 0, 1, BODY);
        await eventually("the beginning at the backend", () => received(version));
        abandon(client);
        expect(await uploadAt(version)).toEqual(CUT);
      }
    });
  }

  it.each<[string, string, (client: Socket) => void]>([
    ["of a length, by FIN", "Content-Length: 50000\r\n\r\n", fin],
    ["of a length, by RST", "Content-Length: 50000\r\n\r\n", rst],
    ["in chunks, by FIN", "Transfer-Encoding: chunked\r\n\r\n2710\r\n", fin],
    ["in chunks, by RST", "Transfer-Encoding: chunked\r\n\r\n2710\r\n", rst],
    [
      "in chunks, by one that is none",
      "Transfer-Encoding: chunked\r\n\r\n2710\r\n",
      (s) => s.write("\r\nzz"),
    ],
  ])("over HTTP/1.1, %s, does not end as a whole one does", async (_how, head, abandon) => {
    const client = connect({ port: door.httpPort, host: "127.0.0.1", allowHalfOpen: true });
    onTestFinished(() => void client.destroy());
    client.on("error", () => {}).resume();
    client.write(`POST / HTTP/1.1\r\nHost: ${HOSTS[version]}\r\n${head}`);
    client.write(BODY);
    await eventually("the beginning at the backend", () => received(version));
    abandon(client);
    expect(await uploadAt(version)).toEqual(CUT);
  });
});

describe("an upload that an h2c backend answers before its end", () => {
  const answer = (peer: FramePeer, status: string): void =>
    peer.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, headerBlockOf({ ":status": status }));

  it.each(CLIENTS)("is cut for the backend, and its answer whole for the client, %s", async (where) => {
    onHttp2 = (peer, { type }) => {
      if (type !== FRAME.data) return;
      onHttp2 = () => {};
      answer(peer, "413");
    };
    const client = await openClient(where);
    request(client, "h2c", "POST");
    client.send(FRAME.data, 0, 1, BODY);
    await eventually("the answer", () => client.endsOf(1).length > 0);
    client.send(FRAME.data, 0, 1, BODY);
    client.send(FRAME.data, FLAG.endStream, 1, BODY);
    expect((await endsOf(client))[0]).toBe("END_STREAM");
    expect(await uploadAt("h2c")).toEqual(CUT);
  });

  it("is cut for the backend whose answer cannot be handed on", async () => {
    onHttp2 = (peer, { type }) => {
      if (type !== FRAME.data) return;
      onHttp2 = () => {};
      peer.send(FRAME.headers, FLAG.endHeaders, 1, headerBlockOf({ ":status": "999" }));
    };
    const client = await openClient("in the clear");
    request(client, "h2c", "POST");
    client.send(FRAME.data, 0, 1, BODY);
    expect(await uploadAt("h2c")).toEqual(CUT);
    expect((await endsOf(client))[0]).toBe("END_STREAM");
  });
});

describe.each(CLIENTS)("a WebSocket on a stream, %s", (where) => {
  const open = async (): Promise<FrameClient> => {
    const client = await openClient(where);
    const more = { ":protocol": "websocket", "sec-websocket-version": "13" };
    const head = { ":method": "CONNECT", ":scheme": "https", ":path": "/", ":authority": HOSTS.h1, ...more };
    client.send(FRAME.headers, FLAG.endHeaders, 1, headerBlockOf(head));
    return client;
  };

  it("whose backend breaks off is reset", async () => {
    let backendSocket: Socket | undefined;
    onHttp1 = (socket) => {
      backendSocket = socket;
      socket.once("data", (head: Buffer) => {
        const key = /sec-websocket-key: (\S+)/i.exec(head.toString("latin1"))?.[1] ?? "";
        socket.write(`${SWITCHED}Sec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`);
      });
    };
    const client = await open();
    await eventually("the head", () => client.has(FRAME.headers, 1));
    (backendSocket as Socket).resetAndDestroy();
    expect(await endsOf(client)).toEqual(CUT);
  });

  it("whose refusal is cut short is reset", async () => {
    onHttp1 = (socket) =>
      socket.once("data", () => socket.end("HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\nhalf"));
    expect(await endsOf(await open())).toEqual(CUT);
  });
});
