import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { closeServer, listen } from "./http/loopback.ts";

/** One session from the node's side: channels of `v5.channel.k8s.io`, spoken by `ws`. */
export interface V5Session {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  /** Messages received on channels 0 to 4. */
  readonly channels: Buffer[][];
  /** Channels that the client closed. */
  readonly closed: number[];
  send(channel: number, payload: Uint8Array | string): void;
  /** Sends the status on channel 3, then Close 1000. */
  succeed(): void;
}

export interface V5Script {
  onStart?(session: V5Session): void;
  onData?(channel: number, payload: Buffer, session: V5Session): void;
  onClosed?(channel: number, session: V5Session): void;
}

export const SUCCESS = '{"metadata":{},"status":"Success"}';

/** A node behind a hop that refuses everything but WebSocket v5 with the hop's own 403. */
export class ScriptedV5Node {
  readonly sessions: V5Session[] = [];
  readonly requests: IncomingMessage[] = [];
  readonly closeCodes: number[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  constructor(script: V5Script) {
    const webSockets = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      handleProtocols: (protocols) => (protocols.has("v5.channel.k8s.io") ? "v5.channel.k8s.io" : false),
    });
    this.#server = createServer((_request, response) => response.writeHead(403).end("websockets only"));
    this.#server.on("connection", (socket: Duplex) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.requests.push(request);
      if (request.headers.upgrade !== "websocket") {
        socket.end(
          "HTTP/1.1 403 Forbidden\r\nContent-Length: 15\r\nConnection: close\r\n\r\nwebsockets only",
        );
        return;
      }
      webSockets.handleUpgrade(request, socket, head, (webSocket) => this.#serve(webSocket, request, script));
    });
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  listen(): Promise<number> {
    return listen(this.#server);
  }

  close(): Promise<void> {
    return closeServer(this.#server, this.#sockets);
  }

  #serve(socket: WebSocket, request: IncomingMessage, script: V5Script): void {
    const send = (channel: number, payload: Uint8Array | string): void =>
      socket.send(Buffer.concat([Buffer.of(channel), Buffer.from(payload)]));
    const session: V5Session = {
      socket,
      request,
      channels: [[], [], [], [], []],
      closed: [],
      send,
      succeed: () => {
        send(3, SUCCESS);
        socket.close(1000);
      },
    };
    this.sessions.push(session);
    socket.on("error", () => {});
    socket.on("close", (code) => this.closeCodes.push(code));
    socket.on("message", (data: Buffer) => {
      const [channel = 0, second = 0] = data;
      if (channel === 255) {
        session.closed.push(second);
        script.onClosed?.(second, session);
        return;
      }
      session.channels[channel]?.push(data.subarray(1));
      script.onData?.(channel, data.subarray(1), session);
    });
    // As with Kubernetes' servers, the first message names a channel and is empty.
    send(1, "");
    script.onStart?.(session);
  }
}
