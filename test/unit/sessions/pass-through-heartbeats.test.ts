import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { defaultSpdyLimits, encodePing, writeDataHeader } from "../../../protocols/spdy/index.ts";
import {
  defaultWebSocketLimits,
  encodeClose,
  encodeControlFrame,
  OPCODE,
  WebSocketFrameDecoder,
} from "../../../protocols/websocket/index.ts";
import { Relay } from "../../../src/sessions/carriers/relay.ts";
import { Tunnel, type TunnelOptions } from "../../../src/sessions/carriers/tunnel.ts";
import { passThroughOf } from "../../../src/sessions/relayed-session.ts";
import type { StreamingRequest } from "../../../src/sessions/streaming-request.ts";
import { CarriedSession, type MemorySocket } from "../../support/carried-session.ts";
import { plainPipe, webSocketPipe } from "../../support/session-peers.ts";

// The bounds under test.
const NODE_SILENCE_MS = 10_000;
const MAX_OWED_PINGS = 64;

const MASK_KEY = 0x1ad34c7f;
const NOTHING = new Uint8Array(0);
const STATUS = '\u0003{"metadata":{},"status":"Success"}';

type Session = readonly ["exec" | "portforward", "spdy" | "websocket", string];

function relayed([subresource, transport, protocol]: Session) {
  const offer = { transport } as StreamingRequest["offer"];
  const header = transport === "spdy" ? "X-Stream-Protocol-Version" : "Sec-WebSocket-Protocol";
  const { ends, decoderFor } = passThroughOf({ offer, subresource, ports: [8080] }, [[header, protocol]], {
    spdy: defaultSpdyLimits,
  });
  const carried = new CarriedSession({}, [ends]);
  const { client, node } = carried;
  const [downstream, upstream] = [client, node].map((socket) => ({ socket, head: NOTHING }));
  carried.carry(
    (life) =>
      new Relay(downstream as never, upstream as never, life, { decoder: decoderFor(life.observers), ends }),
  );
  return carried;
}

/** The frames that a side was sent. */
function framesOf(socket: MemorySocket, role: "client" | "server"): string[] {
  const frames: string[] = [];
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");
  const decoder = new WebSocketFrameDecoder(role, {
    onMessage: (part) => void frames.push(text(part)),
    onPing: (payload) => void frames.push(`PING ${text(payload)}`),
    onPong: (payload) => void frames.push(`PONG ${text(payload)}`),
    onClose: (code) => void frames.push(`Close ${code}`),
  });
  decoder.push(Uint8Array.from(socket.sentBytes));
  return frames;
}

const control = (opcode: number, text: string, isClient: boolean): Uint8Array =>
  encodeControlFrame(opcode, Buffer.from(text), isClient ? MASK_KEY : undefined);

function dataFrame(id: number, text: string): Buffer {
  const header = new Uint8Array(8);
  writeDataHeader(header, 0, id, text.length, false);
  return Buffer.concat([header, Buffer.from(text)]);
}
const ping = (id: number): Buffer => Buffer.from(encodePing({ type: "PING", id }));

describe.each([
  ["a v5 command", ["exec", "websocket", "v5.channel.k8s.io"]],
  ["a v4 command", ["exec", "websocket", "v4.channel.k8s.io"]],
  ["a v1 command", ["exec", "websocket", "channel.k8s.io"]],
  ["a command in base64", ["exec", "websocket", "v4.base64.channel.k8s.io"]],
  ["a legacy port-forward", ["portforward", "websocket", "v4.channel.k8s.io"]],
] as const)("heartbeats of %s that passes through", (_name, session) => {
  it("end here: the client's PING is answered, its PONG is dropped, and neither reaches the node", async () => {
    const { client, node } = relayed(session);
    const pipe = webSocketPipe(client, "client");
    client.push(control(OPCODE.PING, "one", true));
    client.push(control(OPCODE.PONG, "", true));
    const input = session[2].includes("base64") ? "0aW4=" : "\0in";
    pipe.send(Buffer.from(input));
    await turn();
    expect(framesOf(node, "server")).toEqual([input]);
    expect(framesOf(client, "client")).toEqual(["PONG one"]);
  });

  it("are answered between two frames of the node's, wherever a read cuts one", async () => {
    const { client, node } = relayed(session);
    const frame = Buffer.from([0x82, 6, ...Buffer.from("1hello")]);
    node.push(frame.subarray(0, 4));
    await turn();
    for (const payload of ["old", "new"]) client.push(control(OPCODE.PING, payload, true));
    await turn();
    expect(client.sentBytes.equals(frame.subarray(0, 4))).toBe(true);
    node.push(Buffer.concat([frame.subarray(4), frame]));
    await turn();
    expect(framesOf(client, "client").join("")).toBe(
      `${"1hello".slice(0, 2) + "hello".slice(1)}PONG new1hello`,
    );
  });

  it("go to the node only when it has been silent for seconds, and its PING is answered only then", async () => {
    const { client, node, clock, life } = relayed(session);
    node.push(control(OPCODE.PING, "node", false));
    await turn();
    for (let ms = 0; ms < NODE_SILENCE_MS; ms += 1_000) clock.advance(1_000);
    expect(framesOf(node, "server")).toEqual([]);
    clock.advance(1_000);
    expect(framesOf(node, "server")).toEqual(["PONG node"]);
    for (let ms = 0; ms < life.timeouts.webSocketPingMs; ms += 1_000) {
      node.push(Buffer.from([0x82, 2, 0x31, 0x78]));
      await turn();
      clock.advance(1_000);
    }
    expect(framesOf(node, "server")).toEqual(["PONG node"]);
    for (let ms = 0; ms <= NODE_SILENCE_MS; ms += 1_000) clock.advance(1_000);
    expect(framesOf(node, "server")).toEqual(["PONG node", "PING "]);
    expect(framesOf(client, "client")).not.toContain("PING node");
  });

  it("count as no traffic, in either direction", async () => {
    const { client, node, life } = relayed(session);
    client.push(control(OPCODE.PING, "one", true));
    node.push(control(OPCODE.PONG, "", false));
    await turn();
    expect(life).toMatchObject({ upstreamBytes: 0, downstreamBytes: 0 });
  });
});

describe("a session that passes through", () => {
  it("sends nothing to a node that has reported its result", async () => {
    const { client, node } = relayed(["exec", "websocket", "v5.channel.k8s.io"]);
    webSocketPipe(node, "server").send(Buffer.from(STATUS));
    await turn();
    webSocketPipe(client, "client").send(Buffer.from("\u0000late"));
    client.push(encodeClose(1000, "", MASK_KEY));
    await turn();
    expect(node.sentBytes.toString()).toBe("");
    expect(framesOf(client, "client")).toEqual([STATUS]);
  });

  it("keeps an idle client that sends nothing by heartbeats of its own", async () => {
    const { client, clock, life } = relayed(["exec", "websocket", "v5.channel.k8s.io"]);
    clock.advance(life.timeouts.unsolicitedPongMs);
    expect(framesOf(client, "client")).toEqual(["PONG ", "PING "]);
  });

  it("answers a client that does not read once, when it reads again", async () => {
    const { client, node } = relayed(["exec", "websocket", "v5.channel.k8s.io"]);
    let take = (): void => {};
    client._write = (chunk: Buffer, _encoding, done) => {
      client.sent.push(Buffer.from(chunk));
      take = done;
    };
    const output = Buffer.alloc(60_000, "x");
    webSocketPipe(node, "server").send(output);
    await turn();
    for (const payload of ["one", "two"]) client.push(control(OPCODE.PING, payload, true));
    await turn();
    client._write = MemorySocketWrite;
    take();
    await turn();
    expect(framesOf(client, "client").filter((frame) => frame.startsWith("PONG"))).toEqual(["PONG two"]);
  });
});

describe.each([
  ["a SPDY command", ["exec", "spdy", "v4.channel.k8s.io"]],
  ["a SPDY port-forward", ["portforward", "spdy", "portforward.k8s.io"]],
] as const)("heartbeats of %s that passes through", (_name, session) => {
  it("end here, wherever reads cut them", async () => {
    const bytes = Buffer.concat([ping(1), dataFrame(1, "input"), ping(3), dataFrame(1, "more")]);
    for (const length of [1, 5, 7, bytes.length]) {
      const { client, node } = relayed(session);
      for (let at = 0; at < bytes.length; at += length) client.push(bytes.subarray(at, at + length));
      await turn();
      expect(node.sentBytes.equals(Buffer.concat([dataFrame(1, "input"), dataFrame(1, "more")]))).toBe(true);
      expect(client.sentBytes.equals(Buffer.concat([ping(1), ping(3)]))).toBe(true);
    }
  });

  it("are answered between two frames of the node's", async () => {
    const { client, node } = relayed(session);
    const frame = dataFrame(1, "output");
    node.push(frame.subarray(0, 10));
    await turn();
    client.push(ping(5));
    await turn();
    node.push(Buffer.concat([frame.subarray(10), ping(7)]));
    await turn();
    const sent = client.sentBytes;
    const at = sent.indexOf(ping(5));
    const around = Buffer.concat([sent.subarray(0, at), sent.subarray(at + 12)]);
    expect(at).toBeGreaterThan(0);
    expect(around.toString()).toContain("ou");
    expect(around.includes(ping(7))).toBe(false);
    // What is around the answer are whole frames: a SPDY command's may be cut in two of their own.
    let text = "";
    for (let offset = 0; offset < around.length; ) {
      const bytes = around.readUIntBE(offset + 5, 3);
      text += around.subarray(offset + 8, offset + 8 + bytes).toString();
      offset += 8 + bytes;
    }
    expect(text).toBe("output");
  });

  it("are owed to a client up to a bound", async () => {
    const { client, node } = relayed(["portforward", "spdy", "portforward.k8s.io"]);
    const frame = dataFrame(1, "output");
    node.push(frame.subarray(0, 9));
    await turn();
    client.push(Buffer.concat(Array.from({ length: 1_000 }, (_, index) => ping(2 * index + 1))));
    await turn();
    node.push(frame.subarray(9));
    await turn();
    expect(client.sentBytes.length - frame.length).toBe(MAX_OWED_PINGS * ping(1).length);
  });

  it("go to a node that has been silent for seconds", async () => {
    const { node, clock, life } = relayed(session);
    node.push(ping(2));
    await turn();
    clock.advance(NODE_SILENCE_MS);
    expect(node.sentBytes.length).toBe(0);
    for (let ms = 0; ms < NODE_SILENCE_MS; ms += 1_000) clock.advance(1_000);
    expect(node.sentBytes.subarray(0, 12).equals(ping(2))).toBe(true);
    for (let ms = 0; ms < life.timeouts.spdyPingMs; ms += 1_000) clock.advance(1_000);
    expect(node.sentBytes.subarray(12).includes(ping(1))).toBe(true);
  });
});

const LIMITS = { webSocketLimits: defaultWebSocketLimits, spdyLimits: defaultSpdyLimits };

function tunnelled(client: TunnelOptions["client"], node: TunnelOptions["node"]) {
  const carried = new CarriedSession();
  const [downstream, upstream] = [carried.client, carried.node].map((socket) => ({ socket, head: NOTHING }));
  carried.carry(
    (life) => new Tunnel(downstream as never, upstream as never, { client, node, ...LIMITS }, life),
  );
  const pipeOf = (socket: MemorySocket, kind: "spdy" | "messages", role: "client" | "server") =>
    kind === "spdy" ? plainPipe(socket) : webSocketPipe(socket, role);
  const clientPipe = pipeOf(carried.client, client, "client");
  const nodePipe = pipeOf(carried.node, node, "server");
  return Object.assign(carried, {
    send: (bytes: Uint8Array) => clientPipe.send(bytes),
    sendFromNode: (bytes: Uint8Array) => nodePipe.send(bytes),
    toClient: () => Buffer.concat(clientPipe.take()),
    toNode: () => Buffer.concat(nodePipe.take()),
  });
}

describe.each([
  ["to SPDY", "messages", "spdy"],
  ["through to a tunnel", "messages", "messages"],
  ["of a SPDY client, through a bridge", "spdy", "messages"],
] as const)("heartbeats inside of a tunnel %s", (_name, client, node) => {
  it("end here, wherever messages cut them", async () => {
    const bytes = Buffer.concat([ping(1), dataFrame(1, "input"), ping(3), dataFrame(1, "more")]);
    for (const length of [1, 5, 7, bytes.length]) {
      const tunnel = tunnelled(client, node);
      for (let at = 0; at < bytes.length; at += length) tunnel.send(bytes.subarray(at, at + length));
      await turn();
      expect(tunnel.toNode().toString("latin1")).toBe(
        Buffer.concat([dataFrame(1, "input"), dataFrame(1, "more")]).toString("latin1"),
      );
      expect(tunnel.toClient().equals(Buffer.concat([ping(1), ping(3)]))).toBe(true);
    }
  });

  it("are answered between two frames of the node's", async () => {
    const { send, sendFromNode, toClient } = tunnelled(client, node);
    const frame = dataFrame(1, "output");
    sendFromNode(frame.subarray(0, 10));
    await turn();
    send(ping(5));
    await turn();
    expect(toClient().equals(frame.subarray(0, 10))).toBe(true);
    sendFromNode(Buffer.concat([frame.subarray(10), ping(7), frame]));
    await turn();
    expect(toClient().equals(Buffer.concat([frame.subarray(10), ping(5), frame]))).toBe(true);
  });

  it("go to the node only when it has been silent for seconds, and its PING is answered only then", async () => {
    const { send, sendFromNode, toNode, clock, life } = tunnelled(client, node);
    send(ping(1));
    sendFromNode(ping(2));
    await turn();
    for (let ms = 0; ms < NODE_SILENCE_MS; ms += 1_000) clock.advance(1_000);
    expect(toNode().length).toBe(0);
    clock.advance(1_000);
    const sent = toNode();
    expect(sent.subarray(0, ping(2).length).equals(ping(2))).toBe(true);
    for (let ms = 0; ms < life.timeouts.spdyPingMs; ms += 1_000) clock.advance(1_000);
    expect(Buffer.concat([sent, toNode()]).includes(ping(1))).toBe(true);
  });

  it("have one queue of answers, however many a client sends that does not read", async () => {
    const { client: socket, send, toClient } = tunnelled(client, node);
    const stalled = socket._write;
    let take = (): void => {};
    socket._write = (_chunk: Buffer, _encoding, done) => {
      take = done;
    };
    socket.write(Buffer.alloc(socket.writableHighWaterMark));
    send(Buffer.concat(Array.from({ length: 1_000 }, (_, index) => ping(2 * index + 1))));
    await turn();
    expect(socket.writableLength).toBe(socket.writableHighWaterMark);
    socket._write = stalled;
    take();
    await turn();
    expect(toClient().length).toBe(MAX_OWED_PINGS * ping(1).length);
  });
});

/** What a MemorySocket does. */
function MemorySocketWrite(
  this: MemorySocket,
  chunk: Buffer,
  _encoding: BufferEncoding,
  done: () => void,
): void {
  this.sent.push(Buffer.from(chunk));
  done();
}
