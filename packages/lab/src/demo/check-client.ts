import { createHash, randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { flatHeaders, type HeaderLine } from "@sluice/client/internal/http/header-list";
import { requestUpgrade, type SwitchedUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import { CHANNEL } from "@sluice/protocols/remotecommand";
import { SpdySession, type SpdyStream } from "@sluice/protocols/spdy";
import {
  ACCEPT_GUID,
  applyMask,
  checkClientHandshake,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  WebSocketFrameDecoder,
  writeMaskedFrameHeader,
} from "@sluice/protocols/websocket";

/** The API server that the check contacts, as kubectl would. */
export interface CheckedServer {
  readonly endpoint: UpstreamEndpoint;
  readonly token: string;
}

/** A command's output and exit code. */
interface CheckedExec {
  readonly stdout: string;
  readonly status: string;
}

const COMMAND = ["/bin/sh", "-c", 'read line; echo "got $line"; exit 7'];
const INPUT = "hello\n";
const HTTP_REQUEST = "GET / HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n";

/** Over one WebSocket version, runs a command that reads a line, answers it and exits with 7. */
export async function execOverWebSocket(
  server: CheckedServer,
  pod: string,
  version: string,
): Promise<CheckedExec> {
  const upgrade = await openWebSocket(server, execPath(pod), version);
  const output: Buffer[][] = [[], [], [], []];
  let channel = -1;
  const webSocket = new ClientWebSocket(upgrade, (part, isFirst) => {
    if (isFirst) channel = part[0] ?? -1;
    output[channel]?.push(Buffer.from(isFirst ? part.subarray(1) : part));
  });
  webSocket.send(Buffer.concat([Buffer.of(CHANNEL.STDIN), Buffer.from(INPUT)]));
  if (version === "v5.channel.k8s.io") webSocket.send(Buffer.of(CHANNEL.CLOSE, CHANNEL.STDIN));
  await webSocket.ended;
  const text = (index: number): string => Buffer.concat(output[index] ?? []).toString();
  return { stdout: text(CHANNEL.STDOUT), status: text(CHANNEL.ERROR) };
}

/** The same over SPDY/3.1, like kubectl up to 1.29. */
export async function execOverSpdy(server: CheckedServer, pod: string): Promise<CheckedExec> {
  const { socket, head } = await openSpdy(server, execPath(pod), "v4.channel.k8s.io");
  const text: Record<string, string> = { error: "", stdin: "", stdout: "" };
  const spdy = clientSession((bytes) => socket.write(bytes));
  const streams = Object.keys(text).map((type) =>
    openCollecting(spdy, [["streamtype", type]], (part) => {
      text[type] += part;
    }),
  );
  streams[1]?.write(Buffer.from(INPUT));
  streams[1]?.finish();
  await receiveAll(spdy, socket, head);
  return { stdout: text.stdout ?? "", status: text.error ?? "" };
}

/** Fetches `/` from port 80 of the pod through a port-forward whose SPDY travels inside a WebSocket. */
export async function forwardThroughTunnel(server: CheckedServer, pod: string): Promise<string> {
  const upgrade = await openWebSocket(server, forwardPath(pod), "SPDY/3.1+portforward.k8s.io");
  let webSocket: ClientWebSocket | undefined;
  const spdy = clientSession((bytes) => webSocket?.send(bytes));
  webSocket = new ClientWebSocket(upgrade, (part) => spdy.receive(part));
  const answer = await fetchOver(spdy, webSocket.ended);
  webSocket.close();
  return answer;
}

/** The same over bare SPDY/3.1. */
export async function forwardOverSpdy(server: CheckedServer, pod: string): Promise<string> {
  const { socket, head } = await openSpdy(server, forwardPath(pod), "portforward.k8s.io");
  const spdy = clientSession((bytes) => socket.write(bytes));
  const received = receiveAll(spdy, socket, head);
  const answer = await fetchOver(spdy, received);
  socket.destroy();
  return answer;
}

/** One HTTP exchange over a pair of streams; throws any text on the error stream. */
function fetchOver(spdy: SpdySession, connectionEnded: Promise<void>): Promise<string> {
  const headers = (type: string): [string, string][] => [
    ["streamtype", type],
    ["port", "80"],
    ["requestid", "0"],
  ];
  return new Promise((resolve, reject) => {
    let answer = "";
    void connectionEnded.then(() => reject(new Error("the connection ended before the answer")));
    const error = openCollecting(spdy, headers("error"), (part) => reject(new Error(part)));
    error.finish();
    const data = openCollecting(
      spdy,
      headers("data"),
      (part) => {
        answer += part;
        // A kubelet ends the streams one second after the pod has ended its side.
        if (isWhole(answer)) resolve(answer);
      },
      () => resolve(answer),
    );
    data.write(Buffer.from(HTTP_REQUEST));
  });
}

function isWhole(answer: string): boolean {
  const [head = "", body] = answer.split("\r\n\r\n");
  const length = /^content-length: (\d+)$/im.exec(head)?.[1];
  return body !== undefined && length !== undefined && Buffer.byteLength(body) >= Number(length);
}

function openCollecting(
  spdy: SpdySession,
  headers: [string, string][],
  onText: (text: string) => void,
  onEnd: () => void = () => {},
): SpdyStream {
  return spdy.openStream(headers, {
    onData: (part, fin) => {
      if (part.byteLength > 0) onText(Buffer.from(part).toString());
      if (fin) onEnd();
    },
    onEnd,
  });
}

function clientSession(send: (bytes: Uint8Array) => void): SpdySession {
  return new SpdySession("client", { send, onStream: () => 3 });
}

function receiveAll(spdy: SpdySession, socket: Duplex, head: Buffer): Promise<void> {
  return new Promise((resolve) => {
    socket.on("data", (chunk: Buffer) => spdy.receive(chunk));
    socket.once("end", () => socket.end());
    socket.once("close", () => {
      spdy.receiveEnd();
      resolve();
    });
    if (head.byteLength > 0) spdy.receive(head);
    socket.resume();
  });
}

/**
 * A WebSocket client with the features that the check needs: binary messages, masked, until the
 * server closes.
 */
class ClientWebSocket {
  readonly ended: Promise<void>;
  readonly #socket: Duplex;

  constructor({ socket, head }: SwitchedUpgrade, onPart: (part: Uint8Array, isFirst: boolean) => void) {
    this.#socket = socket;
    const decoder = new WebSocketFrameDecoder("client", {
      onMessage: onPart,
      onPing: () => {},
      onPong: () => {},
      onClose: () => socket.end(),
    });
    this.ended = new Promise((resolve) => socket.once("close", () => resolve()));
    socket.on("data", (chunk: Buffer) => decoder.push(chunk));
    socket.once("end", () => socket.end());
    if (head.byteLength > 0) decoder.push(head);
    socket.resume();
  }

  send(message: Uint8Array): void {
    const maskKey = randomBytes(4).readUInt32BE();
    const frame = Buffer.alloc(MAX_FRAME_HEADER_BYTES + message.byteLength);
    const headerBytes = writeMaskedFrameHeader(frame, 0, OPCODE.BINARY, message.byteLength, true, maskKey);
    const payload = frame.subarray(headerBytes, headerBytes + message.byteLength);
    payload.set(message);
    applyMask(payload, maskKey, 0);
    this.#socket.write(frame.subarray(0, headerBytes + message.byteLength));
  }

  close(): void {
    this.#socket.destroy();
  }
}

async function openWebSocket(
  server: CheckedServer,
  path: string,
  protocol: string,
): Promise<SwitchedUpgrade> {
  const key = randomBytes(16).toString("base64");
  const upgrade = await open(server, "GET", path, [
    ["Upgrade", "websocket"],
    ["Sec-WebSocket-Key", key],
    ["Sec-WebSocket-Version", "13"],
    ["Sec-WebSocket-Protocol", protocol],
  ]);
  const accept = createHash("sha1")
    .update(key + ACCEPT_GUID)
    .digest("base64");
  const handshake = checkClientHandshake(
    { status: 101, statusText: upgrade.statusMessage, rawHeaders: flatHeaders(upgrade.rawHeaders) },
    { accept, protocols: [protocol] },
  );
  if (!handshake.ok) throw new Error(handshake.message);
  return upgrade;
}

function openSpdy(server: CheckedServer, path: string, protocol: string): Promise<SwitchedUpgrade> {
  return open(server, "POST", path, [
    ["Upgrade", "SPDY/3.1"],
    ["X-Stream-Protocol-Version", protocol],
  ]);
}

async function open(
  server: CheckedServer,
  method: string,
  path: string,
  lines: HeaderLine[],
): Promise<SwitchedUpgrade> {
  const headers: HeaderLine[] = [
    ["Connection", "Upgrade"],
    ["Authorization", `Bearer ${server.token}`],
    ...lines,
  ];
  const response = await requestUpgrade({ endpoint: server.endpoint, method, path, headers });
  if (response.kind === "switched") return response;
  const body = await response.body.toArray();
  throw new Error(`refused with ${response.status}: ${Buffer.concat(body).toString().trim()}`);
}

function execPath(pod: string): string {
  const query = new URLSearchParams({ container: "main", stdin: "true", stdout: "true" });
  for (const argument of COMMAND) query.append("command", argument);
  return `/api/v1/namespaces/default/pods/${pod}/exec?${query}`;
}

function forwardPath(pod: string): string {
  return `/api/v1/namespaces/default/pods/${pod}/portforward`;
}
