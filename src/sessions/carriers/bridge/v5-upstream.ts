import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { faultOf } from "@sluice/client/internal/sessions/session-end";
import {
  WebSocketConnection,
  type WebSocketEnd,
  webSocketOptions,
} from "@sluice/client/internal/sessions/websocket-connection";
import { ProtocolError } from "@sluice/protocols";
import { CHANNEL, ChannelDemux } from "@sluice/protocols/remotecommand";
import type { WebSocketLimits } from "@sluice/protocols/websocket";
import { CLOSE } from "@sluice/protocols/websocket";
import type { SessionLifecycle } from "../../lifecycle.ts";
import { CommandResult, type Conclusion, failedBy } from "../../observers/command-result.ts";

interface V5UpstreamHandler {
  /** `part` is never empty. */
  onOutput(stream: "stdout" | "stderr", part: Uint8Array): void;
  /** A piece of the Status. After the last piece the upstream should end the session. */
  onStatus(part: Uint8Array, isComplete: boolean): void;
  /** The upstream closed with 1000. */
  onStatusEnd(): void;
  /** Called once when the upstream ends, for any reason. Never called after `leave`. */
  onEnd(conclusion: Conclusion): void;
}

/** The client side of an exec or attach over WebSocket `v5.channel.k8s.io`. */
export class V5Upstream {
  readonly #webSocket: WebSocketConnection;
  readonly #handler: V5UpstreamHandler;
  readonly #result = new CommandResult("v5.channel.k8s.io");
  #hasEndedInput = false;

  constructor(
    { socket }: UpgradedConnection,
    handler: V5UpstreamHandler,
    limits: WebSocketLimits,
    life: SessionLifecycle,
  ) {
    this.#handler = handler;
    // A server cannot close a channel with 255, so to a client 255 is an unknown channel.
    const demux = new ChannelDemux(
      { isBase64: false, hasClose: false },
      { onChannelData: (channel, part) => this.#received(channel, part), onChannelClose: () => {} },
    );
    this.#webSocket = new WebSocketConnection(
      socket,
      {
        onMessage: (part, isFirst, isLast, isText) => {
          checkMessage(part, isFirst && isLast, isText);
          demux.push(part, isFirst, isLast);
        },
        onEnd: (end) => {
          if (end.isClean && end.code === CLOSE.NORMAL) handler.onStatusEnd();
          handler.onEnd(this.#concludedBy(end));
        },
      },
      webSocketOptions("client", limits, life),
    );
  }

  receive(chunk: Uint8Array): void {
    this.#webSocket.receive(chunk);
  }

  tick(nowMs: number): void {
    this.#webSocket.tick(nowMs);
  }

  /** Masks `part` in place. */
  sendInput(part: Uint8Array): void {
    if (!this.#hasEndedInput) this.#webSocket.sendMessage(CHANNEL.STDIN, part);
  }

  endInput(): void {
    if (this.#hasEndedInput) return;
    this.#hasEndedInput = true;
    this.#webSocket.sendMessage(CHANNEL.CLOSE, Uint8Array.of(CHANNEL.STDIN));
  }

  /** Sends a piece of the resize stream's JSON. */
  resize(part: Uint8Array): void {
    this.#webSocket.sendMessage(CHANNEL.RESIZE, part);
  }

  /** Ends the session now, with the outcome that the upstream has reported so far. */
  conclude(): Conclusion {
    this.#webSocket.close(CLOSE.NORMAL, "");
    return this.#result.conclude();
  }

  /**
   * Ends the command's input and the session, because the client has left or the gateway ends the
   * session.
   */
  leave(): void {
    this.endInput();
    this.#webSocket.close(CLOSE.NORMAL, "");
  }

  #received(channel: number, part: Uint8Array): void {
    if (part.byteLength === 0) return;
    if (channel === CHANNEL.STDOUT) this.#handler.onOutput("stdout", part);
    else if (channel === CHANNEL.STDERR) this.#handler.onOutput("stderr", part);
    else if (channel === CHANNEL.ERROR) {
      this.#result.receive(part);
      this.#handler.onStatus(part, this.#result.isComplete);
    }
  }

  /** A complete status is the last message, so it counts even if the connection breaks after it. */
  #concludedBy({ isClean, isProtocolError, code, reason }: WebSocketEnd): Conclusion {
    if (isProtocolError && !this.#result.isComplete)
      return failedBy(faultOf("node", "protocol-error", `the node sent malformed WebSocket: ${reason}`));
    if (!isClean) return this.#result.conclude(`the node's connection was lost: ${reason}`);
    if (code === CLOSE.NORMAL) return this.#result.conclude();
    return this.#result.conclude(`the node closed the session with ${code} and without a status`);
  }
}

/** Rejects messages that client-go rejects from a server. */
function checkMessage(part: Uint8Array, isWhole: boolean, isText: boolean): void {
  if (isText) throw new ProtocolError("malformed-message", "a text message");
  if (isWhole && part.byteLength === 0) throw new ProtocolError("malformed-message", "an empty message");
}
