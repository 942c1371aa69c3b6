import type { Duplex } from "node:stream";
import { sendChannelMessage } from "@sluice/client/internal/sessions/channel-message";
import {
  clientEnd,
  WebSocketConnection,
  webSocketOptions,
} from "@sluice/client/internal/sessions/websocket-connection";
import { NOTHING } from "@sluice/protocols/bytes";
import {
  CHANNEL,
  ChannelDemux,
  type RemoteCommandSpec,
  specOf,
  statusPayload,
} from "@sluice/protocols/remotecommand";
import type { WebSocketLimits } from "@sluice/protocols/websocket";
import { CLOSE } from "@sluice/protocols/websocket";
import type { SessionLifecycle } from "../../lifecycle.ts";
import type {
  CommandClient,
  CommandClientHandler,
  CommandClientOptions,
  OutputStream,
} from "./command-client.ts";

/**
 * The server side of exec and attach over WebSocket protocols before v5. These cannot close stdin: it
 * ends with the connection (kubernetes/kubernetes#89899).
 */
export class ChannelCommandClient implements CommandClient {
  readonly socket: Duplex;
  readonly isReady = true;
  readonly #handler: CommandClientHandler;
  readonly #options: CommandClientOptions;
  readonly #spec: RemoteCommandSpec;
  readonly #webSocket: WebSocketConnection;

  constructor(
    socket: Duplex,
    handler: CommandClientHandler,
    options: CommandClientOptions & { readonly webSocketLimits: WebSocketLimits },
    life: SessionLifecycle,
  ) {
    this.socket = socket;
    this.#handler = handler;
    this.#options = options;
    this.#spec = specOf(options.version);
    const demux = new ChannelDemux(this.#spec, {
      onChannelData: (channel, part) => this.#received(channel, part),
      onChannelClose: () => {},
    });
    this.#webSocket = new WebSocketConnection(
      socket,
      {
        onMessage: (part, isFirst, isLast) => demux.push(part, isFirst, isLast),
        onEnd: (end) => handler.onEnd(clientEnd(end), end.isClean && options.requested.stdin),
      },
      webSocketOptions("server", options.webSocketLimits, life),
    );
  }

  get isInMessage(): boolean {
    return this.#webSocket.isInMessage;
  }

  get hasSentStatus(): boolean {
    return this.#webSocket.hasSentClose;
  }

  /**
   * Sends an empty message on the first output channel, which tells the client that the channels are
   * open.
   */
  start(): void {
    const { stdout, stderr } = this.#options.requested;
    const first = stdout ? CHANNEL.STDOUT : stderr ? CHANNEL.STDERR : CHANNEL.ERROR;
    sendChannelMessage(this.#webSocket, this.#spec, first, NOTHING);
    this.#handler.onReady();
  }

  receive(chunk: Uint8Array): void {
    this.#webSocket.receive(chunk);
  }

  tick(nowMs: number): void {
    this.#webSocket.tick(nowMs);
  }

  sendOutput(stream: OutputStream, part: Uint8Array): void {
    const channel = stream === "stdout" ? CHANNEL.STDOUT : CHANNEL.STDERR;
    sendChannelMessage(this.#webSocket, this.#spec, channel, part);
  }

  finish(status: Uint8Array): void {
    const word = statusPayload(this.#options.version, status);
    this.socket.cork();
    if (word.byteLength > 0) sendChannelMessage(this.#webSocket, this.#spec, CHANNEL.ERROR, word);
    this.leave();
    this.socket.uncork();
  }

  leave(): void {
    this.#webSocket.close(CLOSE.NORMAL, "");
  }

  /**
   * Like wsstream, drops data on unknown channels, unrequested ones, and those that only the server
   * writes.
   */
  #received(channel: number, part: Uint8Array): void {
    const { stdin, tty } = this.#options.requested;
    if (part.byteLength === 0) return;
    if (channel === CHANNEL.STDIN && stdin) this.#handler.onInput(part);
    else if (channel === CHANNEL.RESIZE && tty) this.#handler.onResize(part);
  }
}
