import type { Duplex } from "node:stream";
import { sendChannelMessage } from "@sluice/client/internal/sessions/channel-message";
import type { WebSocketConnection } from "@sluice/client/internal/sessions/websocket-connection";
import { dataChannelOf, encodePortPrefix, errorChannelOf } from "@sluice/protocols/portforward";
import { ChannelDemux, type ChannelFraming } from "@sluice/protocols/remotecommand";
import { CLOSE } from "@sluice/protocols/websocket";
import { PauseGate } from "./command-session.ts";
import { ForwardedConnection, type ForwardTarget } from "./forwarded-connection.ts";
import { openWebSocket, pushOrClose, type ServingContext } from "./open-connection.ts";

/** Serves old WebSocket clients' port-forward: opens one connection per port at once. */
export class LegacyPortForward {
  readonly #socket: Duplex;
  readonly #framing: ChannelFraming;
  readonly #context: ServingContext;
  readonly #gate: PauseGate;
  readonly #webSocket: WebSocketConnection;
  readonly #channels: ChannelDemux;
  readonly #connections = new Map<number, ForwardedConnection>();

  constructor(
    socket: Duplex,
    head: Uint8Array,
    targets: readonly ForwardTarget[],
    isBase64: boolean,
    context: ServingContext,
  ) {
    this.#socket = socket;
    this.#framing = { isBase64, hasClose: false };
    this.#context = context;
    this.#gate = new PauseGate(socket);
    this.#channels = new ChannelDemux(this.#framing, {
      // Odd channels carry errors to the client. Data that the client sends on them is ignored.
      onChannelData: (channel, part) => this.#connections.get(channel)?.write(part),
      onChannelClose: () => {},
    });
    this.#webSocket = openWebSocket(
      socket,
      {
        onMessage: (part, isFirst, isLast) => this.#message(part, isFirst, isLast),
        onEnd: () => this.#clientGone(),
      },
      context,
    );
    context.sessions.add(this);
    context.clock.add(this);
    targets.forEach((target, index) => {
      this.#forward(target, index);
    });
    socket.on("drain", () => {
      for (const connection of this.#connections.values()) connection.resumeReading();
    });
    socket.on("data", (chunk: Uint8Array) => this.#webSocket.receive(chunk));
    this.#webSocket.receive(head);
    this.#closeIfDone();
  }

  tick(nowMs: number): void {
    for (const connection of this.#connections.values()) connection.tick(nowMs);
  }

  abort(): void {
    this.#webSocket.abort();
    this.#clientGone();
  }

  #forward(target: ForwardTarget, index: number): void {
    const dataChannel = dataChannelOf(index);
    const send = (channel: number, payload: Uint8Array): void => {
      this.#socket.cork();
      sendChannelMessage(this.#webSocket, this.#framing, channel, payload);
      this.#socket.uncork();
    };
    const socket = this.#socket;
    send(dataChannel, encodePortPrefix(target.port));
    send(errorChannelOf(index), encodePortPrefix(target.port));
    const connection = new ForwardedConnection(
      {
        sendData: (part) => send(dataChannel, part),
        // A channel cannot end by itself: the WebSocket closes with its last connection.
        finishData: () => {},
        endReading: () => {},
        resetData: () => {},
        sendError: (text) => send(errorChannelOf(index), new TextEncoder().encode(text)),
        finishError: () => {},
        get isFull() {
          return socket.writableNeedDrain;
        },
        setBlocked: (isBlocked) => (isBlocked ? this.#gate.hold(index) : this.#gate.release(index)),
        onOver: () => {
          this.#connections.delete(dataChannel);
          this.#closeIfDone();
        },
      },
      target,
      this.#context.limits,
      () => this.#context.clock.now(),
    );
    this.#connections.set(dataChannel, connection);
  }

  #message(part: Uint8Array, isFirst: boolean, isLast: boolean): void {
    if (!pushOrClose(this.#channels, this.#webSocket, part, isFirst, isLast)) this.#clientGone();
  }

  #closeIfDone(): void {
    if (this.#connections.size > 0) return;
    this.#leave();
    this.#webSocket.close(CLOSE.NORMAL, "");
  }

  #clientGone(): void {
    this.#leave();
    for (const connection of [...this.#connections.values()]) connection.abort();
  }

  #leave(): void {
    this.#context.clock.delete(this);
    this.#context.sessions.delete(this);
  }
}
