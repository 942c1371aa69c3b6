import { readdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { AccessGateway, EXEC_HEAD, EXEC_PATH } from "../../support/access-gateway.ts";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, type FrameClient, openFrameClient } from "../../support/frame-peer.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { answering, listenRaw, type RawUpstream } from "../../support/http/loopback.ts";
import { headerBlockOf } from "../../support/http2-frames.ts";
import { closedPort } from "../../support/misbehaving-servers.ts";

const GET = { ":method": "GET", ":scheme": "https", ":path": "/", ":authority": "a" };
const timeouts = {
  streamIdle: "300ms",
  lingerIdle: "300ms",
  lingerMax: "1s",
  idle: "1s",
  shutdownGracePeriod: "0s",
};

let gateway: AccessGateway;
let door: FrontDoor;
let refusing: RawUpstream;

beforeAll(async () => {
  gateway = await AccessGateway.start(
    (folder) => {
      writeFileSync(path.join(folder, "tokens.csv"), "t,ann,1\n");
      return {
        timeouts,
        authentication: { tokenAuthFile: "tokens.csv" },
        authorization: { mode: ["AlwaysAllow"] },
      };
    },
    // More than one connection's window, and no end.
    { onStream: (name, stream) => void (name === "stdout" && stream.write(Buffer.alloc(100_000, 65))) },
  );
  refusing = await listenRaw(answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n"));
  const paths = ["refuses", "dead"].map((name) => ({
    path: `/${name}`,
    pathType: "Prefix",
    backend: backend(name),
  }));
  door = await FrontDoor.start(
    [
      ...serviceObjects("refuses", [refusing]),
      ...serviceObjects("dead", [{ port: await closedPort() }]),
      ingressObject("all", { rules: [{ http: { paths } }] }),
    ],
    {},
    { timeouts },
  );
  await door.serves(1);
});
afterAll(async () => {
  await gateway.stop();
  await door.stop();
  await refusing.close();
});

const apiPort = (): number => Number(gateway.authority.split(":")[1]);
const doorPort = (): number => door.httpsPort;

/** A client that reads no byte of an answer's body: its streams' windows are 0. */
async function openUnreading(port: number): Promise<FrameClient> {
  const client = await openFrameClient(port, true);
  client.send(FRAME.settings, 0, 0, Buffer.of(0, 4, 0, 0, 0, 0));
  return client;
}

const PLAIN = { ":method": "CONNECT", ":authority": "a:1" };
const CASES: readonly (readonly [what: string, port: () => number, head: object])[] = [
  ["404 to an exec", apiPort, { ...EXEC_HEAD, ":path": EXEC_PATH.replace("/web/", "/none/") }],
  ["400 to a handshake of another version", apiPort, { ...EXEC_HEAD, "sec-websocket-version": "7" }],
  ["501 to another protocol", apiPort, { ...EXEC_HEAD, ":protocol": "connect-udp" }],
  ["501 to a proxy's CONNECT", apiPort, PLAIN],
  ["the output of an exec", apiPort, EXEC_HEAD],
  ["the front door's 501", doorPort, PLAIN],
  ["the front door's 404 to a WebSocket", doorPort, { ...EXEC_HEAD, ":path": "/nowhere" }],
  ["the front door's 502 to a WebSocket", doorPort, { ...EXEC_HEAD, ":path": "/dead" }],
  ["the front door's 404", doorPort, { ...GET, ":path": "/nowhere" }],
  ["the front door's 400", doorPort, { ...GET, ":path": "/%zz" }],
  ["the front door's 502", doorPort, { ...GET, ":path": "/dead" }],
  ["a backend's 403", doorPort, { ...GET, ":path": "/refuses" }],
];

it.each(CASES)("%s is cancelled if its client never reads it", async (_what, port, head) => {
  const client = await openUnreading(port());
  client.send(FRAME.headers, FLAG.endHeaders, 1, headerBlockOf(head as Record<string, string>));
  await eventually("the end of the stream", () => client.endsOf(1).length > 0);
  // RFC 9113 section 8.1: NO_ERROR would say that the answer is complete.
  expect(client.endsOf(1)).toEqual(["RST_STREAM 8"]);
  expect(client.bodyOf(1)).toHaveLength(0);
  // nghttp2 asks for the stream's bytes when the window opens.
  client.send(FRAME.settings, 0, 0, Buffer.of(0, 4, 0, 1, 0, 0));
  client.send(FRAME.ping, 0, 0, Buffer.alloc(8));
  await eventually("PING", () => client.has(FRAME.ping, 0));
  expect(client.bodyOf(1)).toHaveLength(0);
});

// GOAWAY came with the answer, so that the stream was the connection's last one.
it.each([
  ["an exec", EXEC_HEAD],
  ["a read", { ...GET, ":path": "/api" }],
])("401 to %s ends the connection of a client that never reads it", async (_what, head) => {
  const client = await openUnreading(apiPort());
  const block = headerBlockOf({ ...head, authorization: "Bearer nobody" });
  client.send(FRAME.headers, FLAG.endHeaders, 1, block);
  await eventually("the end of the connection", () => client.isOver);
  expect(client.has(FRAME.goAway, 0)).toBe(true);
  expect(client.bodyOf(1)).toHaveLength(0);
});

it("a CONNECT to the front door over HTTP/1.1 holds no descriptor of a client that stays", async () => {
  const descriptors = (): number => readdirSync("/proc/self/fd").length;
  const before = descriptors();
  const sockets = Array.from({ length: 20 }, () => {
    const socket = connect({ port: door.httpPort, host: "127.0.0.1", allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {}).resume();
    socket.write("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n");
    return socket;
  });
  await eventually("the answers", () => sockets.every(({ readableEnded }) => readableEnded));
  // The clients' own ends stay.
  await eventually("the server's ends", () => descriptors() <= before + sockets.length);
});
