import {
  CHANNEL,
  ChannelDemux,
  channelByte,
  encodeBase64,
  encodeResize,
  type RemoteCommandSpec,
  type RemoteCommandVersion,
  specOf,
  type TerminalSize,
} from "@sluice/protocols/remotecommand";
import { CLOSE } from "@sluice/protocols/websocket";
import { ClientWebSocket, type ClientWebSocketEnd } from "./client-websocket.ts";
import type { CommandLink, CommandLinkHandler } from "./command-link.ts";
import type { UpgradedConnection } from "./connect.ts";
import type { SessionTimes } from "./session-times.ts";
import { SessionError, type SessionErrorCode } from "./sessions/session-error.ts";

const TEXT_MESSAGE_TYPE = 1;
/**
 * Bytes of input in one message. Each message is encoded separately, and fits one frame of
 * ClientWebSocket.
 */
const BASE64_PART_BYTES = 24_000;

/**
 * Channels in WebSocket messages. Refuses and ignores the same messages as client-go, with the same
 * errors.
 */
export class WebSocketCommandLink implements CommandLink {
  readonly #socket: UpgradedConnection["socket"];
  readonly #webSocket: ClientWebSocket;
  readonly #handler: CommandLinkHandler;
  readonly #demux: ChannelDemux;
  readonly #spec: RemoteCommandSpec;
  #hasEndedInput = false;

  constructor(
    connection: UpgradedConnection,
    version: RemoteCommandVersion,
    handler: CommandLinkHandler,
    times: SessionTimes,
  ) {
    this.#socket = connection.socket;
    this.#handler = handler;
    this.#spec = specOf(version);
    // Only clients send CLOSE (255), so for a client it is an unknown channel.
    this.#demux = new ChannelDemux(
      { isBase64: this.#spec.isBase64, hasClose: false },
      {
        onChannelData: (channel, part) => this.#data(channel, part),
        onChannelClose: () => {},
      },
    );
    this.#webSocket = new ClientWebSocket(
      connection,
      {
        onMessage: (part, isFirst, isLast, isText) => this.#message(part, isFirst, isLast, isText),
        onDrain: () => handler.onDrain(),
        onEnd: (end) => this.#ended(end),
      },
      times,
    );
  }

  start(reusesReads: boolean): void {
    this.#webSocket.start(reusesReads);
  }

  sendInput(part: Uint8Array): boolean {
    this.#send(CHANNEL.STDIN, part);
    return !this.#webSocket.needsDrain;
  }

  endInput(): void {
    if (this.#hasEndedInput || !this.#spec.hasClose) return;
    this.#hasEndedInput = true;
    this.#webSocket.sendMessages(CHANNEL.CLOSE, Uint8Array.of(CHANNEL.STDIN));
  }

  resize(size: TerminalSize): void {
    this.#send(CHANNEL.RESIZE, encodeResize(size));
  }

  #send(channel: number, payload: Uint8Array): void {
    const prefix = channelByte(channel, this.#spec);
    if (!this.#spec.isBase64) {
      this.#webSocket.sendMessages(prefix, payload);
      return;
    }
    for (let at = 0; at < payload.byteLength; at += BASE64_PART_BYTES) {
      this.#webSocket.sendMessages(prefix, encodeBase64(payload.subarray(at, at + BASE64_PART_BYTES)));
    }
  }

  pause(): void {
    this.#webSocket.pause();
  }

  resume(): void {
    this.#webSocket.resume();
  }

  close(): void {
    this.#webSocket.close();
  }

  onceClosed(done: () => void): void {
    if (this.#socket.closed) done();
    else this.#socket.once("close", done);
  }

  abort(): void {
    this.#webSocket.abort();
  }

  #message(part: Uint8Array, isFirst: boolean, isLast: boolean, isText: boolean): void {
    if (isText && !this.#spec.isBase64) this.#fail(`unexpected message type: ${TEXT_MESSAGE_TYPE}`);
    else if (isFirst && isLast && part.byteLength === 0) this.#fail("read stream id: EOF");
    else this.#demux.push(part, isFirst, isLast);
  }

  #data(channel: number, part: Uint8Array): void {
    if (part.byteLength === 0) return;
    if (channel === CHANNEL.STDOUT) this.#handler.onOutput("stdout", part);
    else if (channel === CHANNEL.STDERR) this.#handler.onOutput("stderr", part);
    else if (channel === CHANNEL.ERROR) this.#handler.onStatus(part);
  }

  #fail(message: string): void {
    this.#webSocket.abort();
    this.#handler.onEnd({ isOrderly: false, error: new SessionError("protocol-error", message) });
  }

  #ended({ isClean, code, reason, cause }: ClientWebSocketEnd): void {
    const isOrderly = isClean && code === CLOSE.NORMAL;
    const error = isOrderly
      ? new SessionError("missing-status", "the server ended the session without a status")
      : new SessionError(codeOf(isClean, cause), `websocket: close ${code}: ${reason}`);
    this.#handler.onEnd({ isOrderly, error });
  }
}

function codeOf(isClean: boolean, cause: SessionErrorCode | undefined): SessionErrorCode {
  return cause ?? (isClean ? "missing-status" : "connection-lost");
}
