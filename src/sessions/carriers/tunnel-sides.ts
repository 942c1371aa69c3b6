import type { Duplex } from "node:stream";
import { abortSocket, clientFailureOf } from "@sluice/client/internal/net/abort-socket";
import { finishAndLinger } from "@sluice/client/internal/net/linger";
import {
  WebSocketConnection,
  type WebSocketEnd,
  webSocketOptions,
} from "@sluice/client/internal/sessions/websocket-connection";
import { ProtocolError } from "@sluice/protocols";
import { CLOSE, type WebSocketLimits } from "@sluice/protocols/websocket";
import type { SessionLifecycle } from "../lifecycle.ts";
import type { Side } from "../observers/session-observer.ts";

/** How a side ended. `webSocket`: for SPDY in WebSocket messages. */
export interface TunnelSideEnd {
  readonly how: string;
  readonly webSocket?: WebSocketEnd | undefined;
}

export interface TunnelSideHandler {
  /** SPDY bytes, never empty. The receiver may overwrite them. */
  onBytes(bytes: Uint8Array): void;
  /** The client sent a text message, which a tunnel does not allow. */
  onText(): void;
  /** Called once, unless `finish` came first. */
  onEnd(end: TunnelSideEnd): void;
}

/** One side of a port-forward: SPDY/3.1 on its connection, or in WebSocket messages. */
export interface TunnelSide {
  readonly socket: Duplex;
  /** True once the kernel has taken our last frame. Absent: the socket's queue shows it. */
  readonly hasSentEnd?: (() => boolean) | undefined;
  /** Takes a chunk from the socket. */
  receive(chunk: Uint8Array): void;
  /** May mask `bytes` in place. */
  send(bytes: Uint8Array): void;
  tick(nowMs: number): void;
  /**
   * Ends the side after everything sent. `isOrderly`: SPDY's own frames announced the end;
   * otherwise plain SPDY is reset.
   */
  finish(closeCode: number, reason: string, isOrderly: boolean): void;
}

export class SpdySide implements TunnelSide {
  readonly socket: Duplex;
  readonly #peer: Side;
  readonly #handler: TunnelSideHandler;
  readonly #life: SessionLifecycle;
  #isOver = false;

  constructor(peer: Side, socket: Duplex, handler: TunnelSideHandler, life: SessionLifecycle) {
    this.#peer = peer;
    this.socket = socket;
    this.#handler = handler;
    this.#life = life;
    const ended = peer === "client" ? "the client ended its connection" : "the node ended the connection";
    socket.on("end", () => this.#end(ended));
    socket.on("error", (error: Error) => this.#end(clientFailureOf(error)));
    socket.on("close", () => this.#end(`the ${peer}'s connection closed`));
  }

  receive(chunk: Uint8Array): void {
    if (!this.#isOver) this.#handler.onBytes(chunk);
  }

  send(bytes: Uint8Array): void {
    if (this.socket.writable) this.socket.write(bytes);
  }

  tick(): void {}

  finish(_closeCode: number, _reason: string, isOrderly: boolean): void {
    this.#isOver = true;
    if (isOrderly) finishAndLinger(this.socket, this.#life.timeouts, this.#life.clock, this.#peer);
    else abortSocket(this.socket);
  }

  #end(how: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.onEnd({ how });
  }
}

/** Message boundaries mean nothing: each read becomes one message. */
export class MessageSide implements TunnelSide {
  readonly socket: Duplex;
  readonly hasSentEnd = (): boolean => this.#webSocket.hasSentClose;
  readonly #webSocket: WebSocketConnection;

  constructor(
    peer: "client" | "node",
    socket: Duplex,
    handler: TunnelSideHandler,
    life: SessionLifecycle,
    limits: WebSocketLimits,
  ) {
    this.socket = socket;
    const isClient = peer === "client";
    this.#webSocket = new WebSocketConnection(
      socket,
      {
        onMessage: (part, _isFirst, _isLast, isText) => {
          if (isText && isClient) handler.onText();
          else if (isText) throw new ProtocolError("malformed-message", "a text message in a tunnel");
          else if (part.byteLength > 0) handler.onBytes(part);
        },
        onEnd: (webSocket) => handler.onEnd({ how: webSocket.reason, webSocket }),
      },
      webSocketOptions(isClient ? "server" : "client", limits, life),
    );
  }

  receive(chunk: Uint8Array): void {
    this.#webSocket.receive(chunk);
  }

  send(bytes: Uint8Array): void {
    this.#webSocket.sendMessage(undefined, bytes);
  }

  tick(nowMs: number): void {
    this.#webSocket.tick(nowMs);
  }

  finish(closeCode: number, reason: string): void {
    this.#webSocket.close(closeCode, closeCode === CLOSE.NORMAL ? "" : reason);
  }
}
