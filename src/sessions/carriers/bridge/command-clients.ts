import type { Duplex } from "node:stream";
import { sendChannelMessage } from "@sluice/client/internal/sessions/channel-message";
import { endOf, faultOf, type SessionEnd } from "@sluice/client/internal/sessions/session-end";
import { SpdyConnection, type SpdyConnectionEnd } from "@sluice/client/internal/sessions/spdy-connection";
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
  type RemoteCommandVersion,
  type RequestedStreams,
  type StreamType,
  spdyStreamTypes,
  specOf,
  statusPayload,
} from "@sluice/protocols/remotecommand";
import type { SpdyLimits, SpdyStream, SpdyStreamHandler } from "@sluice/protocols/spdy";
import { CLOSE, type WebSocketLimits } from "@sluice/protocols/websocket";
import type { SessionLifecycle } from "../../lifecycle.ts";
import type { CommandClient, CommandClientHandler } from "./command-client.ts";

/** The client's protocol version, and the streams that it requested. */
interface CommandClientOptions {
  readonly version: RemoteCommandVersion;
  readonly requested: RequestedStreams;
}

/**
 * The server side of exec and attach over SPDY/3.1, v1 to v4. It sends nothing until the client has
 * opened its streams, because Go's client loses bytes that arrive with the 101.
 */
export class SpdyCommandClient implements CommandClient {
  readonly socket: Duplex;
  /** SPDY has streams, and no messages. */
  readonly isInMessage = false;
  readonly #handler: CommandClientHandler;
  readonly #options: CommandClientOptions;
  readonly #connection: SpdyConnection;
  readonly #expected: readonly StreamType[];
  readonly #streams = new Map<StreamType, SpdyStream>();

  constructor(
    socket: Duplex,
    handler: CommandClientHandler,
    options: CommandClientOptions & { readonly spdyLimits: SpdyLimits; readonly maxQueuedBytes: number },
    { clock, timeouts }: SessionLifecycle,
  ) {
    this.socket = socket;
    this.#handler = handler;
    this.#options = options;
    this.#expected = spdyStreamTypes(options.requested, options.version);
    this.#connection = new SpdyConnection(
      socket,
      { onStream: (stream) => this.#opened(stream), onEnd: (end) => handler.onEnd(endOfClient(end)) },
      {
        role: "server",
        limits: options.spdyLimits,
        lingerTimes: timeouts,
        clock,
        pingIntervalMs: timeouts.spdyPingMs,
        maxQueuedBytes: options.maxQueuedBytes,
      },
    );
  }

  get isReady(): boolean {
    return this.#streams.size === this.#expected.length;
  }

  get hasSentStatus(): boolean {
    return this.#connection.hasSentGoAway;
  }

  start(): void {}

  receive(chunk: Uint8Array): void {
    this.socket.cork();
    this.#connection.receive(chunk);
    this.socket.uncork();
  }

  tick(nowMs: number): void {
    if (this.isReady) this.#connection.tick(nowMs);
  }

  sendOutput(stream: "stdout" | "stderr", part: Uint8Array): void {
    this.#streams.get(stream)?.write(part);
  }

  finish(status: Uint8Array): void {
    this.socket.cork();
    this.#streams.get("stdout")?.finish();
    this.#streams.get("stderr")?.finish();
    const error = this.#streams.get("error");
    error?.write(statusPayload(this.#options.version, status));
    error?.finish();
    // Clients read these streams to their end as well.
    this.#streams.get("stdin")?.finish();
    this.#streams.get("resize")?.finish();
    this.#connection.finish();
    this.socket.uncork();
  }

  leave(): void {
    this.#connection.leave();
  }

  /** Replies to unrequested streams and drops their data, as runtimes do: clients wait for the reply. */
  #opened(stream: SpdyStream): SpdyStreamHandler {
    const type = this.#expected.find((name) => name === stream.headers.get("streamtype"));
    if (type === undefined || this.#streams.has(type)) return IGNORED;
    this.#streams.set(type, stream);
    if (this.isReady) this.#handler.onReady();
    if (type === "stdin") {
      return {
        onData: (part, fin) => {
          if (part.byteLength > 0) this.#handler.onInput(part);
          if (fin) this.#handler.onInputEnd();
        },
        onEnd: ({ type: how }) => how === "reset" && this.#handler.onInputEnd(),
      };
    }
    if (type !== "resize") return IGNORED;
    return { onData: (part) => part.byteLength > 0 && this.#handler.onResize(part), onEnd: () => {} };
  }
}

function endOfClient({ isProtocolError, reason }: SpdyConnectionEnd): SessionEnd {
  if (isProtocolError)
    return faultOf("client", "protocol-error", `the client sent malformed SPDY: ${reason}`);
  return endOf("client-gone", reason);
}

const IGNORED: SpdyStreamHandler = { onData: () => {}, onEnd: () => {} };

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

  sendOutput(stream: "stdout" | "stderr", part: Uint8Array): void {
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
