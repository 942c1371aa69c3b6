import { once } from "node:events";
import { constants } from "node:http2";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { expect } from "vitest";
import { acceptValueOf } from "../../packages/client/src/http/upgrade/websocket-request.ts";
import { SessionClock } from "../../packages/client/src/net/session-clock.ts";
import { FrameEncoder } from "../../protocols/spdy/index.ts";
import {
  encodeClose,
  WebSocketFrameDecoder,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "../../protocols/websocket/index.ts";
import type { Authorizer } from "../../src/access/authz/authorizer.ts";
import type { UserInfo } from "../../src/access/user-info.ts";
import type { SessionAuthorization } from "../../src/config/sections/authorization.ts";
import type { NodeStreaming } from "../../src/config/sections/kubelet.ts";
import { eventually } from "./eventually.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { type GatewayHarness, startGatewayHarness } from "./gateway-harness.ts";
import { afterHead, listenRaw, type RawUpstream } from "./http/loopback.ts";
import { connectHttp2, openSwitched } from "./http2-client.ts";
import { websocketOnly } from "./websocket-only.ts";

/** A socket, or an HTTP/2 stream (RFC 8441), which is reset with CANCEL. */
export type ClientEnd = Duplex & { resetAndDestroy(): unknown };

/** Both sides are raw: the test writes every byte, FIN and RST. */
interface Ends {
  readonly client: ClientEnd;
  readonly node: Socket;
}

export interface Path {
  readonly name: string;
  readonly subresource: "exec" | "attach" | "portforward";
  readonly plan: string;
  /** The client's upgrade: its lines besides those of every upgrade. */
  readonly clientHead: readonly string[];
  readonly nodeHead: readonly string[];
  readonly declaredFeatures?: readonly string[];
  /** Absent: each test has its own node. */
  readonly streaming?: NodeStreaming;
  /** The client's WebSocket is an HTTP/2 stream. */
  readonly isHttp2?: boolean;
  /** What the client sends first, so that the session's streams exist. */
  readonly open: readonly Uint8Array[];
  /** What the node answers to that. */
  readonly accept: readonly Uint8Array[];
  /** A frame with the node's output "out". */
  readonly output: Uint8Array;
  /** How each side ends the session in its protocol. */
  readonly clientLeaves: readonly Uint8Array[];
  readonly nodeSucceeds: readonly Uint8Array[];
  readonly nodeFails?: readonly Uint8Array[];
  readonly nodeReportsFailure?: readonly Uint8Array[];
}

const SUCCESS = '{"metadata":{},"status":"Success"}';
const EXIT_7 =
  '{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: x","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}';
const FAILURE =
  '{"metadata":{},"status":"Failure","message":"Internal error occurred: no such container","reason":"InternalError","code":500}';

/** What the running test has opened. */
export const opened: { gateway?: GatewayHarness | undefined; cable?: FaultProxy | undefined } = {};
const closes: (() => unknown)[] = [];

async function cableTo(port: number): Promise<FaultProxy> {
  opened.cable = await startFaultProxy(port, { cutAfterBytes: Number.POSITIVE_INFINITY, maxCuts: 0 });
  return opened.cable;
}

/** Of each test. */
export async function closeEnds(): Promise<void> {
  for (const close of closes.splice(0)) close();
  await opened.cable?.close();
  await opened.gateway?.close();
  opened.gateway = undefined;
  opened.cable = undefined;
  await raw?.close();
  raw = undefined;
}
let raw: RawUpstream | undefined;

const WEB_SOCKET = (protocol: string): string[] => [
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ...(protocol === "" ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
];
/** The accept value for the key in WEB_SOCKET; a gateway that dials itself uses another key. */
const ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const WEB_SOCKET_ANSWER = (protocol: string): string[] => [
  "Upgrade: websocket",
  `Sec-WebSocket-Accept: ${ACCEPT}`,
  ...(protocol === "" ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
];
const SPDY = (protocol: string): string[] => ["Upgrade: SPDY/3.1", `X-Stream-Protocol-Version: ${protocol}`];

export const server = (channel: number | string, payload: string, fin = true): Buffer => {
  const body = Buffer.concat([
    typeof channel === "number" ? Buffer.of(channel) : Buffer.from(channel),
    Buffer.from(typeof channel === "number" ? payload : Buffer.from(payload).toString("base64")),
  ]);
  const header = new Uint8Array(14);
  const bytes = writeFrameHeader(header, 0, typeof channel === "number" ? 2 : 1, body.byteLength, fin);
  return Buffer.concat([header.subarray(0, bytes), body]);
};
/** A masked binary frame; the key is 0x01020304. */
const masked = (body: Uint8Array): Buffer => {
  const header = new Uint8Array(14);
  const bytes = writeMaskedFrameHeader(header, 0, 2, body.byteLength, true, 0x01020304);
  return Buffer.concat([header.subarray(0, bytes), body.map((byte, at) => byte ^ ((at & 3) + 1))]);
};
const CLIENT_CLOSE = encodeClose(1000, "", 0x0a0b0c0d);
const NODE_CLOSE = encodeClose(1000, "");

const spdyClient = (types: readonly string[], extra: readonly [string, string][] = []): Uint8Array[] => {
  const encoder = new FrameEncoder();
  return types.map((type, index) =>
    encoder.encode({
      type: "SYN_STREAM",
      streamId: 2 * index + 1,
      associatedStreamId: 0,
      priority: 0,
      fin: false,
      unidirectional: false,
      headers: new Map([["streamtype", type], ...extra]),
    }),
  );
};
const spdyReplies = (count: number): Uint8Array[] => {
  const encoder = new FrameEncoder();
  return Array.from({ length: count }, (_, index) =>
    encoder.encode({ type: "SYN_REPLY", streamId: 2 * index + 1, fin: false, headers: new Map() }),
  );
};
const goAway = (): Uint8Array =>
  new FrameEncoder().encode({ type: "GOAWAY", lastGoodStreamId: 0, status: 0 });
export const spdyData = (streamId: number, payload: string): Buffer => {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(streamId, 0);
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, Buffer.from(payload)]);
};
const spdyEnd = (status: string): Uint8Array[] => [spdyData(1, status), goAway()];

const webSocketCommand = (
  protocol: string,
  subresource: "exec" | "attach",
  declaredFeatures: readonly string[] = [],
): Path => {
  const isBase64 = protocol.includes("base64");
  const end = (status: string) => [server(isBase64 ? "3" : 3, status), NODE_CLOSE];
  return {
    name: `${subresource}, ${protocol} passed through`,
    subresource,
    plan: "pass-through",
    clientHead: WEB_SOCKET(protocol),
    nodeHead: WEB_SOCKET_ANSWER(protocol),
    declaredFeatures,
    open: [],
    accept: [server(isBase64 ? "1" : 1, "")],
    output: server(isBase64 ? "1" : 1, "out"),
    clientLeaves: [CLIENT_CLOSE],
    nodeSucceeds: end(SUCCESS),
    nodeFails: end(EXIT_7),
    nodeReportsFailure: end(FAILURE),
  };
};

const spdyCommand = (subresource: "exec" | "attach"): Path => ({
  name: `${subresource}, SPDY v4 passed through`,
  subresource,
  plan: "pass-through",
  clientHead: SPDY("v4.channel.k8s.io"),
  nodeHead: SPDY("v4.channel.k8s.io"),
  open: spdyClient(["error", "stdout"]),
  accept: spdyReplies(2),
  output: spdyData(3, "out"),
  clientLeaves: [goAway()],
  nodeSucceeds: spdyEnd(SUCCESS),
  nodeFails: spdyEnd(EXIT_7),
  nodeReportsFailure: spdyEnd(FAILURE),
});

const FORWARD = spdyClient(
  ["error", "data"],
  [
    ["port", "80"],
    ["requestid", "0"],
  ],
);
const TUNNEL = "SPDY/3.1+portforward.k8s.io";

export const PATHS: readonly Path[] = [
  webSocketCommand("v5.channel.k8s.io", "exec", ["ExtendWebSocketsToKubelet"]),
  webSocketCommand("v5.channel.k8s.io", "attach", ["ExtendWebSocketsToKubelet"]),
  webSocketCommand("v4.channel.k8s.io", "exec"),
  webSocketCommand("v4.base64.channel.k8s.io", "attach"),
  spdyCommand("exec"),
  spdyCommand("attach"),
  {
    name: "exec, v5 translated",
    subresource: "exec",
    plan: "translate",
    clientHead: WEB_SOCKET("v5.channel.k8s.io"),
    nodeHead: SPDY("v4.channel.k8s.io"),
    open: [],
    accept: spdyReplies(2),
    output: spdyData(3, "out"),
    clientLeaves: [CLIENT_CLOSE],
    nodeSucceeds: spdyEnd(SUCCESS),
    nodeFails: spdyEnd(EXIT_7),
    nodeReportsFailure: spdyEnd(FAILURE),
  },
  {
    name: "port-forward, SPDY passed through",
    subresource: "portforward",
    plan: "pass-through",
    clientHead: SPDY("portforward.k8s.io"),
    nodeHead: SPDY("portforward.k8s.io"),
    open: FORWARD,
    accept: spdyReplies(2),
    output: spdyData(3, "out"),
    clientLeaves: [goAway()],
    nodeSucceeds: [goAway()],
  },
  {
    name: "port-forward, a tunnel passed through",
    subresource: "portforward",
    plan: "pass-through",
    clientHead: WEB_SOCKET(TUNNEL),
    nodeHead: WEB_SOCKET_ANSWER(TUNNEL),
    declaredFeatures: ["ExtendWebSocketsToKubelet"],
    open: FORWARD.map(masked),
    accept: spdyReplies(2).map((frame) =>
      server(frame[0] as number, Buffer.from(frame.subarray(1)).toString("latin1")),
    ),
    output: server(0, `\0\0\u0003\0\0\0\u0003out`),
    clientLeaves: [masked(goAway())],
    nodeSucceeds: [NODE_CLOSE],
  },
  {
    name: "port-forward, a tunnel to SPDY",
    subresource: "portforward",
    plan: "tunnel",
    clientHead: WEB_SOCKET(TUNNEL),
    nodeHead: SPDY("portforward.k8s.io"),
    open: FORWARD.map(masked),
    accept: spdyReplies(2),
    output: spdyData(3, "out"),
    clientLeaves: [masked(goAway())],
    nodeSucceeds: [goAway()],
  },
  {
    name: "port-forward, v4 channels passed through",
    subresource: "portforward",
    plan: "pass-through",
    clientHead: WEB_SOCKET("v4.channel.k8s.io"),
    nodeHead: WEB_SOCKET_ANSWER("v4.channel.k8s.io"),
    open: [masked(Uint8Array.of(0, 80, 0))],
    accept: [server(0, "P\0"), server(1, "P\0")],
    output: server(0, "out"),
    clientLeaves: [CLIENT_CLOSE],
    nodeSucceeds: [NODE_CLOSE],
  },
];

const found = (name: string): Path => {
  const path = PATHS.find((candidate) => candidate.name === name);
  if (path === undefined) throw new Error(`there is no path ${name}`);
  return path;
};
const V5_NODE = found("exec, v5.channel.k8s.io passed through");
const TUNNEL_NODE = found("port-forward, a tunnel passed through");

/**
 * A path with `client`'s side, to a node that can only be reached by WebSocket v5 or the tunnel.
 */
const bridged = (client: Path, node: Path, name: string): Path => ({
  ...client,
  name,
  plan: "bridge",
  streaming: websocketOnly,
  declaredFeatures: [],
  nodeHead: node.nodeHead,
  accept: client.subresource === "portforward" ? node.accept : [],
  output: node.output,
  nodeSucceeds: node.nodeSucceeds,
  ...(node.nodeFails !== undefined && { nodeFails: node.nodeFails }),
  ...(node.nodeReportsFailure !== undefined && { nodeReportsFailure: node.nodeReportsFailure }),
});

/** Paths behind a hop that only passes WebSocket v5 and the tunnel. */
export const BRIDGES: readonly Path[] = [
  bridged(found("exec, SPDY v4 passed through"), V5_NODE, "exec, SPDY v4 bridged to v5"),
  bridged(found("attach, SPDY v4 passed through"), V5_NODE, "attach, SPDY v4 bridged to v5"),
  bridged(found("exec, v4.channel.k8s.io passed through"), V5_NODE, "exec, v4 bridged to v5"),
  bridged(found("attach, v4.base64.channel.k8s.io passed through"), V5_NODE, "attach, base64 bridged to v5"),
  bridged(
    found("port-forward, SPDY passed through"),
    TUNNEL_NODE,
    "port-forward, SPDY bridged to the tunnel",
  ),
];

/** Every path of a WebSocket client, on a stream of HTTP/2. */
export const HTTP2_PATHS: readonly Path[] = [...PATHS, ...BRIDGES]
  .filter(({ clientHead }) => !clientHead[0]?.includes("SPDY"))
  .map((path) => ({ ...path, name: `${path.name}, over HTTP/2`, isHttp2: true }));

export interface StartOptions {
  readonly policy?: object;
  readonly authorizer?: Authorizer;
  readonly sessions?: Omit<SessionAuthorization, "portForward" | "currentScreen">;
  readonly user?: Partial<UserInfo>;
  readonly idleMs?: number;
  readonly clock?: SettableClock;
  /** The side on which a cable can be pulled. */
  readonly proxied?: "client" | "node";
}

/** A clock that ticks often and can be advanced. */
export class SettableClock extends SessionClock {
  aheadMs = 0;

  constructor() {
    super(20);
  }

  override now(): number {
    return super.now() + this.aheadMs;
  }
}

export async function start(
  path: Path,
  { policy, idleMs = 600_000, clock = new SettableClock(), proxied, ...access }: StartOptions = {},
): Promise<Ends> {
  const nodes: Socket[] = [];
  raw = await listenRaw((socket) => {
    socket.on("error", () => {});
    afterHead(socket, (received) => {
      const key = /^sec-websocket-key: *(\S+)/im.exec(received.toString("latin1"))?.[1] ?? "";
      const head = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", ...path.nodeHead, "", ""];
      socket.write(head.join("\r\n").replace(ACCEPT, acceptValueOf(key)));
      nodes.push(socket);
    });
  });
  const gateway = await startGatewayHarness({
    kubeletPort: proxied === "node" ? (await cableTo(raw.port)).port : raw.port,
    declaredFeatures: path.declaredFeatures ?? [],
    ...access,
    timeouts: { lingerIdleMs: 10_000, idleMs },
    clock,
    ...(path.streaming !== undefined && { streaming: path.streaming }),
    ...(path.isHttp2 === true && { isHttp2: true }),
    ...(policy !== undefined && { policy }),
  });
  opened.gateway = gateway;
  const ownPort = Number(gateway.authority.split(":")[1]);
  const port = proxied === "client" ? (await cableTo(ownPort)).port : ownPort;
  let answered = 0;
  const client = path.isHttp2 === true ? await openStream(path, port) : await openSocket(path, port);
  await eventually("the node has its session", () => nodes.length === 1);
  const node = nodes[0] as Socket;
  client.on("data", (chunk: Buffer) => {
    answered += chunk.byteLength;
  });
  // The head of a stream's answer is not data.
  if (path.isHttp2 !== true) await eventually("the client has its 101", () => answered > 0);
  // The session is ready once the client's first bytes and the node's replies have passed.
  let reached = 0;
  node.on("data", (chunk: Buffer) => {
    reached += chunk.byteLength;
  });
  const switched = answered;
  for (const bytes of path.open) client.write(bytes);
  const isBridge = path.plan === "bridge";
  // A bridge answers a command's streams itself, and opens a port-forward's streams.
  if (path.open.length > 0)
    await eventually("the streams are open", () =>
      isBridge && path.subresource !== "portforward" ? answered > switched : reached > 0,
    );
  const before = answered;
  for (const bytes of path.accept) node.write(bytes);
  if (path.plan !== "translate" && !isBridge)
    await eventually("the client has the replies", () => answered > before);
  return { client, node };
}

function targetOf({ subresource }: Path): string {
  const query = subresource === "portforward" ? "ports=80" : "stdout=true&command=x";
  return `/api/v1/namespaces/default/pods/web/${subresource}?${query}`;
}

async function openSocket(path: Path, port: number): Promise<ClientEnd> {
  const client = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  closes.push(() => client.destroy());
  client.on("error", () => {});
  await once(client, "connect");
  const method = path.clientHead[0]?.includes("SPDY") ? "POST" : "GET";
  const lines = [`${method} ${targetOf(path)} HTTP/1.1`, "Host: x", "Connection: Upgrade"];
  client.write([...lines, ...path.clientHead, "", ""].join("\r\n"));
  return client;
}

async function openStream(path: Path, port: number): Promise<ClientEnd> {
  const session = await connectHttp2(`https://127.0.0.1:${port}`);
  closes.push(() => session.destroy());
  const protocol = path.clientHead.at(-1)?.split(": ")[1] ?? "";
  const answer = await openSwitched(session, targetOf(path), { "sec-websocket-protocol": protocol });
  if ("status" in answer) throw new Error(`refused with ${answer.status}: ${answer.body}`);
  const { stream } = answer;
  return Object.assign(stream, { resetAndDestroy: () => stream.close(constants.NGHTTP2_CANCEL) });
}

interface Report {
  readonly endedBy: string;
  readonly cause: string;
  readonly code: number;
}

export async function report(): Promise<Report> {
  const ends = () => (opened.gateway?.logLines ?? []).filter((line) => line.includes("session ended"));
  await eventually("the session's end is reported", () => ends().length === 1);
  const { endedBy, cause, code } = JSON.parse(ends()[0] as string) as Report;
  const counted = (await opened.gateway?.metric("sluice_streaming_sessions_ended_total"))?.filter(
    (l) => !l.endsWith(" 0"),
  );
  expect(counted).toEqual([expect.stringContaining(`ended_by="${endedBy}",cause="${cause}"} 1`)]);
  expect(opened.gateway?.context.sessions.list()).toEqual([]);
  return { endedBy, cause, code };
}

export const write = (socket: Duplex, frames: readonly Uint8Array[] = []): void => {
  socket.write(Buffer.concat(frames));
};
/** A peer whose socket is ended ends its side, too. */
export const endsWithPeer = (socket: Duplex): void => {
  socket.on("end", () => socket.end());
  socket.resume();
};

export const CLIENT = { endedBy: "client", cause: "client-gone", code: 200 };
export const LOST = { endedBy: "node", cause: "upstream-lost", code: 500 };
export const COMPLETED = { endedBy: "node", cause: "completed", code: 200 };

/** What a client has read, in its protocol's terms: messages or DATA, and how it was closed. */
export function readBy({ clientHead }: Path, bytes: Buffer): string[] {
  const seen: string[] = [];
  if (clientHead[0]?.includes("SPDY")) {
    for (let at = 0; at + 8 <= bytes.length; at += 8 + bytes.readUIntBE(at + 5, 3)) {
      const data = bytes.toString("latin1", at + 8, at + 8 + bytes.readUIntBE(at + 5, 3));
      // An empty DATA frame only carries a FIN.
      if ((bytes[at] as number) < 0x80 && data !== "") seen.push(`${bytes.readUInt32BE(at)}:${data}`);
    }
    return seen;
  }
  let message = "";
  new WebSocketFrameDecoder("client", {
    onMessage: (part, _isFirst, isLast) => {
      message += Buffer.from(part).toString("latin1");
      if (isLast) seen.push(message);
      if (isLast) message = "";
    },
    onPing: () => {},
    onPong: () => {},
    onClose: (code, reason) => void seen.push(`closed with ${code} ${reason}`.trim()),
  }).push(Uint8Array.from(bytes));
  return seen;
}

/** The last thing that each protocol's client sees if its session does not end by itself. */
export function failureSeen({ clientHead, subresource }: Path, closeCode: number): RegExp[] {
  const isSpdy = clientHead[0]?.includes("SPDY") === true;
  if (subresource === "portforward")
    return [isSpdy ? /^1:error forwarding port 80: / : new RegExp(`^closed with ${closeCode} \\w`)];
  if (isSpdy) return [/^1:.*"status":"Failure".*"code":500/];
  const isBase64 = clientHead.some((line) => line.includes("base64"));
  return [isBase64 ? /^3[\w+/]+=*$/ : /^[^{]\{.*"status":"Failure".*"code":500/, /^closed with 1000$/];
}

export const FAILURES: readonly [string, number, (node: Socket, clock: SettableClock) => void][] = [
  [
    "the gateway drains",
    1001,
    () => void opened.gateway?.context.sessions.endAll("the gateway is shutting down"),
  ],
  ["it reaches its time limit", 1001, (_node, clock) => (clock.aheadMs = 10_000)],
  ["it is idle", 1001, (_node, clock) => (clock.aheadMs = 5_000)],
  ["its node ends without a word", 1011, (node) => node.end()],
  ["its node is killed", 1011, (node) => node.resetAndDestroy()],
];
