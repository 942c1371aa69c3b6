import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { SessionClock } from "../../../../packages/client/src/net/session-clock.ts";
import { FrameEncoder } from "../../../../protocols/spdy/index.ts";
import {
  encodeClose,
  WebSocketFrameDecoder,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "../../../../protocols/websocket/index.ts";
import { endSession } from "../../../../src/sessions/session-actions.ts";
import { eventually } from "../../../support/eventually.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { afterHead, listenRaw, type RawUpstream } from "../../../support/http/loopback.ts";

/** Both sides are raw sockets: every byte, FIN and RST is the test's. */
interface Ends {
  readonly client: Socket;
  readonly node: Socket;
}

interface Path {
  readonly name: string;
  readonly subresource: "exec" | "attach" | "portforward";
  readonly plan: string;
  /** The client's upgrade: lines beyond those that every upgrade has. */
  readonly clientHead: readonly string[];
  readonly nodeHead: readonly string[];
  readonly declaredFeatures?: readonly string[];
  /** What the client sends first, so that the session's streams exist. */
  readonly open: readonly Uint8Array[];
  /** What the node answers to that. */
  readonly accept: readonly Uint8Array[];
  /** A frame with the node's output "out". */
  readonly output: Uint8Array;
  /** How each side says the end in its protocol. */
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

let gateway: GatewayHarness | undefined;
let raw: RawUpstream | undefined;
let client: Socket | undefined;
let cable: FaultProxy | undefined;

async function cableTo(port: number): Promise<FaultProxy> {
  cable = await startFaultProxy(port, { cutAfterBytes: Number.POSITIVE_INFINITY, maxCuts: 0 });
  return cable;
}

afterEach(async () => {
  client?.destroy();
  await cable?.close();
  await gateway?.close();
  await raw?.close();
  gateway = raw = client = cable = undefined;
});

const WEB_SOCKET = (protocol: string): string[] => [
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ...(protocol === "" ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
];
const WEB_SOCKET_ANSWER = (protocol: string): string[] => [
  "Upgrade: websocket",
  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
  ...(protocol === "" ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
];
const SPDY = (protocol: string): string[] => ["Upgrade: SPDY/3.1", `X-Stream-Protocol-Version: ${protocol}`];

const server = (channel: number | string, payload: string, fin = true): Buffer => {
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
const spdyData = (streamId: number, payload: string): Buffer => {
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

const PATHS: readonly Path[] = [
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

interface StartOptions {
  readonly policy?: object;
  readonly idleMs?: number;
  readonly clock?: SettableClock;
  /** Where a cable can be pulled. */
  readonly proxied?: "client" | "node";
}

/** Ticks often, and may be put forward. */
class SettableClock extends SessionClock {
  aheadMs = 0;

  constructor() {
    super(20);
  }

  override now(): number {
    return super.now() + this.aheadMs;
  }
}

async function start(
  path: Path,
  { policy, idleMs = 600_000, clock = new SettableClock(), proxied }: StartOptions = {},
): Promise<Ends> {
  const nodes: Socket[] = [];
  raw = await listenRaw((socket) => {
    socket.on("error", () => {});
    afterHead(socket, () => {
      socket.write(
        ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", ...path.nodeHead, "", ""].join("\r\n"),
      );
      nodes.push(socket);
    });
  });
  gateway = await startGatewayHarness({
    kubeletPort: proxied === "node" ? (await cableTo(raw.port)).port : raw.port,
    declaredFeatures: path.declaredFeatures ?? [],
    timeouts: { lingerIdleMs: 10_000, idleMs },
    clock,
    ...(policy !== undefined && { policy }),
  });
  const [host = "", port = ""] = gateway.authority.split(":");
  client = connect(
    proxied === "client"
      ? { host: "127.0.0.1", port: (await cableTo(Number(port))).port, allowHalfOpen: true }
      : { host, port: Number(port), allowHalfOpen: true },
  );
  client.on("error", () => {});
  await once(client, "connect");
  const query = path.subresource === "portforward" ? "ports=80" : "stdout=true&command=x";
  const method = path.clientHead[0]?.includes("SPDY") ? "POST" : "GET";
  const target = `/api/v1/namespaces/default/pods/web/${path.subresource}?${query}`;
  client.write(
    [`${method} ${target} HTTP/1.1`, "Host: x", "Connection: Upgrade", ...path.clientHead, "", ""].join(
      "\r\n",
    ),
  );
  await eventually("the node has its session", () => nodes.length === 1);
  const node = nodes[0] as Socket;
  let answered = 0;
  client.on("data", (chunk: Buffer) => {
    answered += chunk.byteLength;
  });
  await eventually("the client has its 101", () => answered > 0);
  // The node's first words come back only when they, and what the client opened, have passed.
  let reached = 0;
  node.on("data", (chunk: Buffer) => {
    reached += chunk.byteLength;
  });
  for (const bytes of path.open) client.write(bytes);
  if (path.open.length > 0) await eventually("the node has the streams", () => reached > 0);
  const before = answered;
  for (const bytes of path.accept) node.write(bytes);
  if (path.plan !== "translate") await eventually("the client has the replies", () => answered > before);
  return { client, node };
}

interface Report {
  readonly endedBy: string;
  readonly cause: string;
  readonly code: number;
}

async function report(): Promise<Report> {
  const ends = () => (gateway?.logLines ?? []).filter((line) => line.includes("session ended"));
  await eventually("the session's end is reported", () => ends().length === 1);
  const { endedBy, cause, code } = JSON.parse(ends()[0] as string) as Report;
  const counted = (await gateway?.metric("sluice_streaming_sessions_ended_total"))?.filter(
    (l) => !l.endsWith(" 0"),
  );
  expect(counted).toEqual([expect.stringContaining(`ended_by="${endedBy}",cause="${cause}"} 1`)]);
  expect(gateway?.context.sessions.list()).toEqual([]);
  return { endedBy, cause, code };
}

const write = (socket: Socket, frames: readonly Uint8Array[] = []): void => {
  socket.write(Buffer.concat(frames));
};
/** What a peer does when its socket is ended: it ends, too. */
const endsWithPeer = (socket: Socket): void => {
  socket.on("end", () => socket.end());
  socket.resume();
};

const CLIENT = { endedBy: "client", cause: "client-gone", code: 200 };
const LOST = { endedBy: "node", cause: "upstream-lost", code: 500 };
const COMPLETED = { endedBy: "node", cause: "completed", code: 200 };

describe.each(PATHS)("the end of $name", (path) => {
  it("is the client's that leaves in its protocol's words, though the node's connection ends first", async () => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    const heard = once(node, "data");
    write(client, path.clientLeaves);
    // Where the gateway ends the protocol itself the node hears of it by FIN.
    endsWithPeer(node);
    await Promise.race([heard, once(node, "end")]);
    node.end();
    expect(await report()).toEqual(CLIENT);
  });

  it("is the client's that is killed: FIN", async () => {
    const { client, node } = await start(path);
    endsWithPeer(node);
    client.end();
    expect(await report()).toEqual(CLIENT);
  });

  it("is the client's that is killed: FIN, and its node breaks off then", async () => {
    const { client, node } = await start(path);
    node.once("end", () => node.resetAndDestroy());
    node.resume();
    client.end();
    expect(await report()).toEqual(CLIENT);
  });

  it("is the client's that is killed: RST", async () => {
    const { client, node } = await start(path);
    endsWithPeer(node);
    client.resetAndDestroy();
    expect(await report()).toEqual(CLIENT);
  });

  it.each(["FIN", "RST"])("is the node's that is killed: %s", async (how) => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    if (how === "RST") node.resetAndDestroy();
    else node.end();
    expect(await report()).toEqual(LOST);
  });

  it("is the node's word where it says one", async () => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    write(node, path.nodeSucceeds);
    node.end();
    expect(await report()).toEqual(COMPLETED);
  });

  it("is the gateway's that drains", async () => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    endsWithPeer(node);
    void gateway?.context.sessions.endAll("the gateway is shutting down");
    expect(await report()).toEqual({ endedBy: "gateway", cause: "shutdown", code: 500 });
  });

  it.each([
    "client",
    "node",
  ] as const)("is the gateway's where the network of the %s stalls", async (proxied) => {
    const { client, node } = await start(path, { proxied, idleMs: 500 });
    for (const end of [client, node]) endsWithPeer(end);
    cable?.freeze();
    expect(await report()).toEqual({ endedBy: "gateway", cause: "idle", code: 500 });
  });

  it("is the gateway's where a limit is reached", async () => {
    const rule = { name: "short", action: "allow", maxDuration: "10s" };
    const clock = new SettableClock();
    const { client, node } = await start(path, { policy: { rules: [rule] }, clock });
    for (const end of [client, node]) endsWithPeer(end);
    clock.aheadMs = 10_000;
    expect(await report()).toEqual({ endedBy: "gateway", cause: "time-limit", code: 500 });
  });
});

const FREEZE = "the session was ended by cleo: production freeze";
const FORBIDDEN = {
  metadata: {},
  status: "Failure",
  message: FREEZE,
  reason: "Forbidden",
  details: { causes: [{ reason: "sluice.dev/SessionEnded", message: "moderator" }] },
  code: 403,
};

/** What a client has read, as a client of its protocol reads it: messages or DATA, and how it was closed. */
function readBy({ clientHead }: Path, bytes: Buffer): string[] {
  const seen: string[] = [];
  if (clientHead[0]?.includes("SPDY")) {
    for (let at = 0; at + 8 <= bytes.length; at += 8 + bytes.readUIntBE(at + 5, 3)) {
      const data = bytes.toString("latin1", at + 8, at + 8 + bytes.readUIntBE(at + 5, 3));
      if ((bytes[at] as number) < 0x80) seen.push(`${bytes.readUInt32BE(at)}:${data}`);
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

/** What a moderator's end looks like to the client of each protocol. */
function endByModerator({ clientHead, subresource }: Path): string[] {
  const status = JSON.stringify(FORBIDDEN);
  const isSpdy = clientHead[0]?.includes("SPDY") === true;
  const text = `error forwarding port 80: ${FREEZE}`;
  if (subresource === "portforward") return isSpdy ? [`1:${text}`] : [`closed with 1008 ${FREEZE}`];
  if (isSpdy) return [`1:${status}`];
  const isBase64 = clientHead.some((line) => line.includes("base64"));
  const message = isBase64 ? `3${Buffer.from(status).toString("base64")}` : `\u0003${status}`;
  return [message, "closed with 1000"];
}

describe.each(PATHS)("$name that a moderator ends", (path) => {
  it("has the moderator's Status behind whole frames of the node, though the node goes on", async () => {
    const { client, node } = await start(path);
    const received: Buffer[] = [];
    client.on("data", (chunk: Buffer) => received.push(chunk));
    const closed = new Promise((resolve) => client.once("close", resolve));
    for (const end of [client, node]) endsWithPeer(end);
    node.write(Buffer.concat([path.output, path.output.subarray(0, 5)]));
    const out = path.name.includes("base64") ? "b3V0" : "out";
    await eventually("the output came", () => Buffer.concat(received).includes(out));
    const { sessions } = gateway?.context as GatewayHarness["context"];
    const id = sessions.list()[0]?.id ?? "";
    const ended = endSession([sessions], { id, message: FREEZE, status: FORBIDDEN });
    node.write(Buffer.concat([path.output.subarray(5), path.output]));
    expect(await ended).toBe("ended");
    expect(await report()).toEqual({ endedBy: "gateway", cause: "moderator", code: 403 });
    await closed;
    const seen = readBy(path, Buffer.concat(received));
    const end = endByModerator(path);
    expect(seen.slice(seen.length - end.length)).toEqual(end);
  });
});

/** What the client of each protocol sees last where its session does not end by itself. */
function failureSeen({ clientHead, subresource }: Path, closeCode: number): RegExp[] {
  const isSpdy = clientHead[0]?.includes("SPDY") === true;
  if (subresource === "portforward")
    return [isSpdy ? /^1:error forwarding port 80: / : new RegExp(`^closed with ${closeCode} \\w`)];
  if (isSpdy) return [/^1:.*"status":"Failure".*"code":500/];
  const isBase64 = clientHead.some((line) => line.includes("base64"));
  return [isBase64 ? /^3[\w+/]+=*$/ : /^[^{]\{.*"status":"Failure".*"code":500/, /^closed with 1000$/];
}

const FAILURES: readonly [string, number, (node: Socket, clock: SettableClock) => void][] = [
  ["the gateway drains", 1001, () => void gateway?.context.sessions.endAll("the gateway is shutting down")],
  ["it reaches its time limit", 1001, (_node, clock) => (clock.aheadMs = 10_000)],
  ["it is idle", 1001, (_node, clock) => (clock.aheadMs = 5_000)],
  ["its node ends without a word", 1011, (node) => node.end()],
  ["its node is killed", 1011, (node) => node.resetAndDestroy()],
];

describe.each(PATHS)("the client of $name", (path) => {
  it.each(FAILURES)("is told, and has no clean end, where %s", async (what, closeCode, act) => {
    const rule = { name: "short", action: "allow", maxDuration: what.includes("limit") ? "10s" : "1h" };
    const clock = new SettableClock();
    const idleMs = what.includes("idle") ? 5_000 : 600_000;
    const { client, node } = await start(path, { policy: { rules: [rule] }, clock, idleMs });
    const received: Buffer[] = [];
    client.on("data", (chunk: Buffer) => received.push(chunk));
    const closed = new Promise((resolve) => client.once("close", resolve));
    for (const end of [client, node]) endsWithPeer(end);
    act(node, clock);
    await closed;
    const expected = failureSeen(path, closeCode).map((pattern) => expect.stringMatching(pattern));
    expect(readBy(path, Buffer.concat(received)).slice(-expected.length)).toEqual(expected);
  });
});

describe.each(PATHS.filter(({ nodeFails }) => nodeFails !== undefined))("the end of $name", (path) => {
  it("is complete with an exit code that is not 0", async () => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    write(node, path.nodeFails);
    node.end();
    expect(await report()).toEqual(COMPLETED);
  });

  it("is the node's that reports a failure", async () => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    write(node, path.nodeReportsFailure);
    node.end();
    expect(await report()).toEqual({ endedBy: "node", cause: "upstream-failed", code: 500 });
  });

  it("is complete though the client, which has the status, resets before the node ends", async () => {
    const { client, node } = await start(path);
    if (path.plan === "translate") return;
    const status = once(client, "data");
    write(node, path.nodeSucceeds.slice(0, 1));
    await status;
    client.resetAndDestroy();
    expect(await report()).toEqual(COMPLETED);
  });

  it("is the client's that never got the result", async () => {
    const { client, node } = await start(path);
    client.pause();
    // More than both kernels take, so that the status waits in the gateway.
    const output = "x".repeat(60_000);
    const isSpdy = path.nodeHead[0]?.includes("SPDY") === true;
    const frame = isSpdy ? spdyData(3, output) : server(path.name.includes("base64") ? "1" : 1, output);
    for (let sent = 0; sent < 8_000_000; sent += frame.byteLength) node.write(frame);
    write(node, path.nodeSucceeds);
    node.end();
    await eventually("the gateway holds output", () => node.writableLength > 0 || node.writableFinished);
    client.resetAndDestroy();
    endsWithPeer(node);
    expect(await report()).toEqual(CLIENT);
  });
});

it("a SPDY client that resets behind its status, with the node's GOAWAY unread, has its result", async () => {
  const path = PATHS.find(({ name }) => name === "exec, SPDY v4 passed through") as Path;
  const { client, node } = await start(path);
  client.pause();
  endsWithPeer(node);
  write(node, path.nodeSucceeds);
  node.end();
  // Its place is free when everything was written, and the client's kernel has it.
  await eventually("the session is over", () => gateway?.context.sessions.size === 0);
  await new Promise((resolve) => setImmediate(resolve));
  client.resetAndDestroy();
  expect(await report()).toEqual(COMPLETED);
});
