import { once } from "node:events";
import { request } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import { request as requestTls } from "node:https";
import type { Socket } from "node:net";
import { WebSocket } from "ws";
import { SpdySession, type SpdyStreamHandler } from "../../protocols/spdy/index.ts";
import { openWebSocket } from "./http2-client.ts";
import { compareBody, seededBody } from "./seeded-answers.ts";
import { TUNNEL_PROTOCOL, TunnelClient } from "./tunnel-client.ts";

/** The server from which a session is requested, and the user. */
export interface SessionServer {
  readonly url: string;
  readonly token: string;
}

/** A command that echoes the bytes that its client sends, different ones in each session. */
export interface SeededSession {
  /** Stops reading; bytes then wait in the gateway and in the kernel. */
  pause(): void;
  resume(): void;
  /** "ok", or the fault in the output, when the session is over. */
  readonly result: Promise<string>;
}

/** The bytes of one write of a client. */
const PART_BYTES = 30_000;

/** Over `v5.channel.k8s.io` or an earlier WebSocket protocol, with `ws`. */
export async function webSocketSession(
  { url, token }: SessionServer,
  pod: string,
  body: number,
  length: number,
  protocol = "v5.channel.k8s.io",
): Promise<SeededSession> {
  const socket = new WebSocket(url.replace(/^http/, "ws") + execPath(pod, length), protocol, {
    perMessageDeflate: false,
    rejectUnauthorized: false,
    headers: { authorization: `Bearer ${token}` },
  });
  await once(socket, "open");
  return echoedOver(socket, body, length);
}

/** The same on a stream of an HTTP/2 connection (RFC 8441). */
export async function streamSession(
  connection: ClientHttp2Session,
  { token }: SessionServer,
  pod: string,
  body: number,
  length: number,
): Promise<SeededSession> {
  const answer = await openWebSocket(connection, execPath(pod, length), {
    authorization: `Bearer ${token}`,
    "sec-websocket-protocol": "v5.channel.k8s.io",
  });
  if ("status" in answer) throw new Error(`refused with ${answer.status}: ${answer.body}`);
  return echoedOver(answer.socket, body, length);
}

/** Over SPDY/3.1. */
export async function spdySession(
  server: SessionServer,
  pod: string,
  body: number,
  length: number,
): Promise<SeededSession> {
  const { socket } = await upgraded(server, execPath(pod, length), "POST", {
    Upgrade: "SPDY/3.1",
    "X-Stream-Protocol-Version": "v4.channel.k8s.io",
  });
  const spdy = new SpdySession("client", {
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    onStream: () => 3,
  });
  spdy.openStream([["streamtype", "error"]], IGNORED);
  const stdin = spdy.openStream([["streamtype", "stdin"]], IGNORED);
  const stdout = collector();
  spdy.openStream([["streamtype", "stdout"]], stdout);
  socket.on("error", () => {});
  socket.on("data", (chunk: Buffer) => spdy.receive(chunk));
  socket.on("end", () => socket.end());
  const result = once(socket, "close").then(() => compareBody(stdout.bytes(), body, length));
  for (const part of partsOf(body, length)) stdin.write(part);
  return { pause: () => void socket.pause(), resume: () => void socket.resume(), result };
}

/** A port-forward through the tunnel to the echo on port 7. */
export async function tunnelSession(
  server: SessionServer,
  pod: string,
  body: number,
  length: number,
): Promise<SeededSession> {
  const path = `/api/v1/namespaces/default/pods/${pod}/portforward`;
  const { socket, head } = await upgraded(server, path, "GET", {
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": Buffer.alloc(16).toString("base64"),
    "Sec-WebSocket-Protocol": TUNNEL_PROTOCOL,
  });
  const client = new TunnelClient(TUNNEL_PROTOCOL, socket, head, true);
  client.openStream("error", 0, 7).stream.finish();
  const data = client.openStream("data", 0, 7);
  const result = data.ended.then(() => {
    client.socket.terminate();
    return compareBody(data.text(), body, length);
  });
  for (const part of partsOf(body, length)) data.stream.write(part);
  data.stream.finish();
  return { pause: () => client.socket.pause(), resume: () => client.socket.resume(), result };
}

const IGNORED: SpdyStreamHandler = { onData: () => {}, onEnd: () => {} };

function collector(): SpdyStreamHandler & { bytes(): Buffer } {
  const parts: Buffer[] = [];
  return {
    onData: (part) => void parts.push(Buffer.from(part)),
    onEnd: () => {},
    bytes: () => Buffer.concat(parts),
  };
}

async function upgraded(
  { url, token }: SessionServer,
  path: string,
  method: string,
  headers: Record<string, string>,
): Promise<{ socket: Socket; head: Buffer }> {
  const send = url.startsWith("https:") ? requestTls : request;
  const upgrade = send(url + path, {
    method,
    rejectUnauthorized: false,
    headers: { Authorization: `Bearer ${token}`, Connection: "Upgrade", ...headers },
  });
  const [, socket, head] = (await once(upgrade.end(), "upgrade")) as [unknown, Socket, Buffer];
  return { socket, head };
}

function echoedOver(socket: WebSocket, body: number, length: number): SeededSession {
  const parts: Buffer[] = [];
  const isBase64 = socket.protocol.startsWith("base64") || socket.protocol.includes(".base64.");
  socket.on("message", (data: Buffer) => {
    if (!isBase64 && data[0] === 1) parts.push(data.subarray(1));
    if (isBase64 && data[0] === 0x31) parts.push(Buffer.from(data.toString("latin1", 1), "base64"));
  });
  socket.on("error", () => {});
  const result = once(socket, "close").then(() => compareBody(Buffer.concat(parts), body, length));
  for (const part of partsOf(body, length)) {
    if (isBase64) socket.send(`0${part.toString("base64")}`);
    else socket.send(Buffer.concat([Buffer.of(0), part]));
  }
  return { pause: () => socket.pause(), resume: () => socket.resume(), result };
}

function* partsOf(body: number, length: number): Generator<Buffer> {
  const bytes = seededBody(body, length);
  for (let at = 0; at < length; at += PART_BYTES) yield bytes.subarray(at, at + PART_BYTES);
}

/** `head` ends by itself, because protocols before v5 cannot end an input. */
function execPath(pod: string, length: number): string {
  const command = ["head", "-c", String(length)].map((word) => `command=${word}`).join("&");
  return `/api/v1/namespaces/default/pods/${pod}/exec?stdin=true&stdout=true&${command}`;
}
