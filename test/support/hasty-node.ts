import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { SpdySession, type SpdyStream } from "../../protocols/spdy/index.ts";
import { encodeClose, OPCODE, writeFrameHeader } from "../../protocols/websocket/index.ts";
import { closeServer, listen } from "./http/loopback.ts";

const FRAME_BYTES = 32 * 1024;
const STATUS = '{"metadata":{},"status":"Success"}';

export interface HastyNode {
  readonly port: number;
  readonly sha256: string;
  close(): Promise<void>;
}

/**
 * A node that closes its socket right after the last byte, as Kubernetes' servers do. Queued bytes
 * are still sent, unless a byte arrives: that is answered with a reset. Until then it drops its
 * input.
 */
export async function startHastyNode(outputBytes: number): Promise<HastyNode> {
  const output = Buffer.alloc(outputBytes, createHash("sha512").update("output").digest());
  const sockets: Socket[] = [];
  const server: Server = createServer();
  server.on("upgrade", (request, socket: Socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    const isSpdy = request.headers.upgrade?.toLowerCase() === "spdy/3.1";
    if (isSpdy) serveSpdy(socket, output);
    else serveWebSocket(socket, request.headers, output);
  });
  const port = await listen(server);
  const sha256 = createHash("sha256").update(output).digest("hex");
  return { port, sha256, close: () => closeServer(server, sockets) };
}

function closeAtOnce(socket: Socket): void {
  socket.removeAllListeners("data");
  // If input were left unread, closing the socket would reset it at once.
  socket.resume();
  socket.end(() => socket.destroy());
}

function serveWebSocket(socket: Socket, headers: NodeJS.Dict<string | string[]>, output: Buffer): void {
  const key = `${headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const protocol = String(headers["sec-websocket-protocol"]).split(",")[0]?.trim();
  const accept = createHash("sha1").update(key).digest("base64");
  const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  const answers = [`Sec-WebSocket-Accept: ${accept}`, `Sec-WebSocket-Protocol: ${protocol}`, "", ""];
  socket.write([...lines, ...answers].join("\r\n"));
  const isBase64 = protocol?.startsWith("v4.base64") === true;
  const send = (channel: number, payload: Buffer): void => {
    const body = isBase64
      ? Buffer.from(`${channel}${payload.toString("base64")}`)
      : Buffer.concat([Buffer.of(channel), payload]);
    const header = Buffer.alloc(14);
    const bytes = writeFrameHeader(header, 0, isBase64 ? OPCODE.TEXT : OPCODE.BINARY, body.length, true);
    socket.write(header.subarray(0, bytes));
    socket.write(body);
  };
  for (let at = 0; at < output.length; at += FRAME_BYTES) send(1, output.subarray(at, at + FRAME_BYTES));
  send(3, Buffer.from(STATUS));
  socket.write(encodeClose(1000, ""));
  closeAtOnce(socket);
}

function serveSpdy(socket: Socket, output: Buffer): void {
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n",
  );
  const streams = new Map<string, SpdyStream>();
  const session = new SpdySession("server", {
    send: (bytes) => void socket.write(bytes),
    onStream: (stream) => {
      streams.set(stream.headers.get("streamtype") ?? "", stream);
      return { onData: () => {}, onEnd: () => {} };
    },
  });
  socket.on("data", (chunk) => {
    session.receive(chunk);
    const [stdout, error] = [streams.get("stdout"), streams.get("error")];
    if (stdout === undefined || error === undefined || !streams.has("stdin")) return;
    for (let at = 0; at < output.length; at += FRAME_BYTES)
      stdout.write(Uint8Array.from(output.subarray(at, at + FRAME_BYTES)));
    stdout.finish();
    error.write(Buffer.from(STATUS));
    error.finish();
    session.goAway();
    closeAtOnce(socket);
  });
}
