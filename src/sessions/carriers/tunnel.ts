import type { SpdyLimits } from "../../../protocols/spdy/index.ts";
import type { WebSocketLimits } from "../../../protocols/websocket/index.ts";
import { CLOSE } from "../../../protocols/websocket/index.ts";
import { feed } from "../../net/feed.ts";
import { finishAndLinger } from "../../net/linger.ts";
import type { UpgradedConnection } from "../../net/upgraded-connection.ts";
import { ForwardDecoder } from "../decoders/forward-decoder.ts";
import type { SessionLifecycle } from "../lifecycle.ts";
import { ForwardEndObserver } from "../observers/end-observer.ts";
import type { StreamingSession } from "../session.ts";
import { closeCodeFor, faultOf, reasonOf, type SessionEnd } from "../session-end.ts";
import { NodeSilence } from "./node-silence.ts";
import { clientEnd, WebSocketConnection, type WebSocketEnd } from "./websocket-connection.ts";

const ENDED = "the node ended the connection";

/**
 * Carries port-forward: SPDY/3.1 in WebSocket messages downstream, the same bytes upstream. Message
 * boundaries mean nothing: each read becomes one message. PINGs of both sides end here.
 */
export class Tunnel implements StreamingSession {
  readonly #upstream: UpgradedConnection["socket"];
  readonly #webSocket: WebSocketConnection;
  readonly #life: SessionLifecycle;
  readonly #ends = new ForwardEndObserver("GOAWAY");
  readonly #decoder: ForwardDecoder;
  readonly #silence: NodeSilence;
  #lastBeatMs: number;

  constructor(
    downstream: UpgradedConnection,
    upstream: UpgradedConnection,
    limits: WebSocketLimits,
    spdyLimits: SpdyLimits,
    life: SessionLifecycle,
  ) {
    const { clock, timeouts } = life;
    this.#decoder = new ForwardDecoder(spdyLimits, life.observers, this.#ends);
    this.#upstream = upstream.socket;
    this.#life = life;
    this.#lastBeatMs = clock.now();
    this.#silence = new NodeSilence(this.#lastBeatMs);
    this.#webSocket = new WebSocketConnection(
      downstream.socket,
      {
        onMessage: (part, _isFirst, _isLast, isText) => this.#fromClient(part, isText),
        onEnd: (end) => this.#clientEnded(end),
      },
      {
        role: "server",
        limits,
        lingerTimes: timeouts,
        clock,
        pingIntervalMs: timeouts.webSocketPingMs,
        pongIntervalMs: timeouts.unsolicitedPongMs,
      },
    );
    feed(
      upstream.socket,
      downstream.socket,
      (chunk) => this.#fromUpstream(chunk),
      life.bandwidth?.direction(),
    );
    feed(
      downstream.socket,
      upstream.socket,
      (chunk) => this.#webSocket.receive(chunk),
      life.bandwidth?.direction(),
    );
    upstream.socket.on("end", () => this.#upstreamEnded(CLOSE.NORMAL, this.#ends.nodeEnd(ENDED)));
    upstream.socket.on("error", (error: Error) => this.#upstreamBroke(error.message));
    upstream.socket.on("close", () => this.#upstreamBroke("the node's connection closed"));
    if (upstream.head.byteLength > 0) this.#fromUpstream(upstream.head);
    if (downstream.head.byteLength > 0) this.#webSocket.receive(downstream.head);
  }

  tick(nowMs: number): void {
    this.#webSocket.tick(nowMs);
    const isHeldUp = this.#upstream.isPaused() || this.#webSocket.socket.writableNeedDrain;
    if (!this.#silence.isQuiet(nowMs, isHeldUp) || this.#upstream.writableNeedDrain) return;
    const answer = this.#decoder.answerNode();
    if (answer !== undefined) this.#passUp(answer);
    if (nowMs - this.#lastBeatMs < this.#life.timeouts.spdyPingMs) return;
    this.#lastBeatMs = nowMs;
    const beat = this.#decoder.beatNode();
    if (beat !== undefined) this.#passUp(beat);
  }

  end(end: SessionEnd): void {
    this.#upstreamEnded(closeCodeFor(end), end);
  }

  #fromUpstream(chunk: Uint8Array): void {
    this.#silence.heard();
    const end = this.#decoder.fromNode(chunk, this.#passDown);
    if (end !== undefined) this.#upstreamEnded(CLOSE.POLICY_VIOLATION, end);
  }

  readonly #passDown = (bytes: Uint8Array): void => {
    this.#life.downstreamBytes += bytes.byteLength;
    this.#webSocket.sendMessage(undefined, bytes);
  };

  readonly #passUp = (bytes: Uint8Array): void => {
    if (this.#upstream.writable) this.#upstream.write(bytes);
  };

  #fromClient(part: Uint8Array, isText: boolean): void {
    if (isText) {
      const message = "the client sent a text message into a tunnel";
      this.#upstreamEnded(CLOSE.UNSUPPORTED_DATA, faultOf("client", "protocol-error", message));
      return;
    }
    if (part.byteLength === 0) return;
    const end = this.#decoder.fromClient(part, this.#passUp);
    if (end !== undefined) {
      this.#upstreamEnded(CLOSE.POLICY_VIOLATION, end);
      return;
    }
    this.#life.upstreamBytes += part.byteLength;
    const answer = this.#decoder.answerClient();
    if (answer !== undefined) this.#webSocket.sendMessage(undefined, answer);
  }

  #upstreamBroke(message: string): void {
    this.#upstreamEnded(CLOSE.INTERNAL_ERROR, this.#ends.nodeEnd(message));
  }

  /**
   * Everything from the upstream has been written. The close code tells the client whether it is
   * complete.
   */
  #upstreamEnded(closeCode: number, end: SessionEnd): void {
    if (this.#life.isOver) return;
    this.#over(end);
    this.#webSocket.close(closeCode, closeCode === CLOSE.NORMAL ? "" : reasonOf(end));
    finishAndLinger(this.#upstream, this.#life.timeouts, this.#life.clock);
  }

  #clientEnded(end: WebSocketEnd): void {
    this.#over(clientEnd(end));
    finishAndLinger(this.#upstream, this.#life.timeouts, this.#life.clock);
  }

  #over(end: SessionEnd): void {
    this.#life.end(end, this.#webSocket.socket, () => this.#webSocket.hasSentClose);
  }
}
