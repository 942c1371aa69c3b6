import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocket } from "ws";
import { SpdySession, type SpdyStream } from "../../protocols/spdy/index.ts";
import { closeServer, listen } from "./http/loopback.ts";

const ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const TUNNEL = "SPDY/3.1+portforward.k8s.io";

/** One tunnel from the node's side. Streams are named by type and request id, such as `data0`. */
export interface TunnelSession {
  readonly socket: WebSocket;
  readonly spdy: SpdySession;
  readonly streams: Map<string, SpdyStream>;
  readonly received: Map<string, Buffer[]>;
  readonly fins: string[];
}

export interface TunnelScript {
  /** Absent: accepts every stream. */
  accepts?(name: string): boolean;
  onStream?(name: string, stream: SpdyStream, session: TunnelSession): void;
  onData?(name: string, part: Buffer, fin: boolean, session: TunnelSession): void;
}

/**
 * A node that only accepts the port-forward tunnel: WebSocket by `ws`, with scripted SPDY inside.
 */
export class ScriptedTunnelNode {
  readonly sessions: TunnelSession[] = [];
  readonly requests: IncomingMessage[] = [];
  readonly closeCodes: number[] = [];
  readonly messages: Buffer[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  constructor(script: TunnelScript) {
    this.#server = createServer();
    this.#server.on("connection", (socket: Duplex) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.requests.push(request);
      if (request.headers["sec-websocket-protocol"] !== TUNNEL) {
        socket.end(
          "HTTP/1.1 403 Forbidden\r\nContent-Length: 15\r\nConnection: close\r\n\r\nwebsockets only",
        );
        return;
      }
      const accept = createHash("sha1")
        .update(request.headers["sec-websocket-key"] + ACCEPT_GUID)
        .digest("base64");
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${TUNNEL}\r\n\r\n`,
      );
      this.#serve(serverSocketOver(socket, head), script);
    });
  }

  listen(): Promise<number> {
    return listen(this.#server);
  }

  close(): Promise<void> {
    return closeServer(this.#server, this.#sockets);
  }

  #serve(socket: WebSocket, script: TunnelScript): void {
    const streams = new Map<string, SpdyStream>();
    const received = new Map<string, Buffer[]>();
    const fins: string[] = [];
    const spdy = new SpdySession("server", {
      // Each write is one message, as in spdystream.
      send: (bytes) => socket.send(Buffer.from(bytes)),
      onStream: (stream) => {
        const name = `${stream.headers.get("streamtype")}${stream.headers.get("requestid")}`;
        if (script.accepts?.(name) === false) return 3;
        streams.set(name, stream);
        received.set(name, []);
        // The reply is sent when this function returns, and data must not overtake it.
        queueMicrotask(() => script.onStream?.(name, stream, session));
        return {
          onData: (part, fin) => {
            const copy = Buffer.from(part);
            if (copy.byteLength > 0) received.get(name)?.push(copy);
            if (fin) fins.push(name);
            script.onData?.(name, copy, fin, session);
          },
          onEnd: () => {},
        };
      },
    });
    const session: TunnelSession = { socket, spdy, streams, received, fins };
    this.sessions.push(session);
    socket.on("error", () => {});
    socket.on("close", (code) => {
      spdy.receiveEnd();
      this.closeCodes.push(code);
    });
    socket.on("message", (data: Buffer) => {
      this.messages.push(data);
      spdy.receive(Buffer.from(data));
    });
  }
}

/**
 * The server side of `ws` over a connection that is already upgraded: its own handshake refuses the
 * tunnel's name.
 */
function serverSocketOver(socket: Duplex, head: Buffer): WebSocket {
  const Bare = WebSocket as unknown as new (
    address: null,
    protocols: undefined,
    options: object,
  ) => WebSocket & { _isServer: boolean; setSocket(socket: Duplex, head: Buffer, options: object): void };
  const webSocket = new Bare(null, undefined, { autoPong: true, closeTimeout: 30_000 });
  webSocket.setSocket(socket, head, {
    allowSynchronousEvents: true,
    maxPayload: 0,
    skipUTF8Validation: false,
  });
  return webSocket;
}
