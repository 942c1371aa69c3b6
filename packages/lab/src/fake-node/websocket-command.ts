import type { Duplex } from "node:stream";
import { sendChannelMessage } from "@sluice/client/internal/sessions/channel-message";
import type { WebSocketConnection } from "@sluice/client/internal/sessions/websocket-connection";
import { NOTHING } from "@sluice/protocols/bytes";
import {
  CHANNEL,
  ChannelDemux,
  type RemoteCommandSpec,
  ResizeDecoder,
  specOf,
} from "@sluice/protocols/remotecommand";
import { CLOSE } from "@sluice/protocols/websocket";
import type { CommandExit } from "./command-process.ts";
import {
  type CommandService,
  CommandSession,
  type CommandTransport,
  failureFrame,
} from "./command-session.ts";
import { sendInChunks } from "./limits.ts";
import { openWebSocket, pushOrClose, type ServingContext } from "./open-connection.ts";

/** Serves an exec or attach over WebSocket channels on a socket after its 101. */
export class WebSocketCommand implements CommandTransport {
  readonly socket: Duplex;
  readonly #service: CommandService;
  readonly #spec: RemoteCommandSpec;
  readonly #webSocket: WebSocketConnection;
  readonly #session: CommandSession;
  readonly #channels: ChannelDemux;
  readonly #resizes = new ResizeDecoder();
  #isStdinOpen: boolean;

  constructor(socket: Duplex, head: Uint8Array, service: CommandService, context: ServingContext) {
    this.socket = socket;
    this.#service = service;
    this.#spec = specOf(service.version);
    this.#isStdinOpen = service.requested.stdin;
    this.#channels = new ChannelDemux(this.#spec, {
      onChannelData: (channel, part) => this.#received(channel, part),
      onChannelClose: (channel) => {
        if (channel === CHANNEL.STDIN) this.#endStdin();
      },
    });
    this.#webSocket = openWebSocket(
      socket,
      {
        onMessage: (part, isFirst, isLast) => this.#message(part, isFirst, isLast),
        onEnd: () => this.#session.clientGone(),
      },
      context,
    );
    this.#session = new CommandSession(this, service.start, context.limits, () => {
      context.sessions.delete(this.#session);
    });
    context.sessions.add(this.#session);
    // The first message contains only a channel byte: it tells the client that the channels are
    // open (reference 3.5).
    sendChannelMessage(this.#webSocket, this.#spec, this.#firstChannel, NOTHING);
    this.#session.start();
    socket.on("data", (chunk: Uint8Array) => this.#webSocket.receive(chunk));
    this.#webSocket.receive(head);
  }

  sendOutput(stream: "stdout" | "stderr", part: Uint8Array): void {
    const channel = stream === "stdout" ? CHANNEL.STDOUT : CHANNEL.STDERR;
    sendInChunks(part, (chunk) => sendChannelMessage(this.#webSocket, this.#spec, channel, chunk));
  }

  /** Output channels cannot end alone: all end with the WebSocket. */
  endOutput(): void {}

  finish(exit: CommandExit): void {
    const word = failureFrame(exit, this.#service);
    if (word.length > 0) sendChannelMessage(this.#webSocket, this.#spec, CHANNEL.ERROR, word);
    this.#webSocket.close(CLOSE.NORMAL, "");
  }

  abort(): void {
    this.#webSocket.abort();
  }

  get #firstChannel(): number {
    const { stdout, stderr } = this.#service.requested;
    if (stdout) return CHANNEL.STDOUT;
    return stderr ? CHANNEL.STDERR : CHANNEL.ERROR;
  }

  #message(part: Uint8Array, isFirst: boolean, isLast: boolean): void {
    if (!pushOrClose(this.#channels, this.#webSocket, part, isFirst, isLast)) this.#session.clientGone();
  }

  /** Drops data on channels that were not requested, and data after a channel's end. */
  #received(channel: number, part: Uint8Array): void {
    if (channel === CHANNEL.STDIN && this.#isStdinOpen) this.#session.receiveStdin(part);
    if (channel === CHANNEL.RESIZE && this.#service.requested.tty) {
      for (const size of this.#resizes.push(part)) this.#session.receiveResize(size);
    }
  }

  #endStdin(): void {
    if (!this.#isStdinOpen) return;
    this.#isStdinOpen = false;
    this.#session.receiveStdinEnd();
  }
}
