import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { NodeSilence } from "@sluice/client/internal/sessions/node-silence";
import {
  closeCodeFor,
  endOf,
  faultOf,
  reasonOf,
  type SessionEnd,
} from "@sluice/client/internal/sessions/session-end";
import { clientEnd } from "@sluice/client/internal/sessions/websocket-connection";
import type { SpdyLimits } from "@sluice/protocols/spdy";
import { CLOSE, type WebSocketLimits } from "@sluice/protocols/websocket";
import { feed } from "../../net/feed.ts";
import { ForwardDecoder } from "../decoders/forward-decoder.ts";
import type { SessionLifecycle } from "../lifecycle.ts";
import { ForwardEndObserver } from "../observers/end-observer.ts";
import type { StreamingSession } from "../session.ts";
import { BOUNDARY_WAIT_MS } from "./relay.ts";
import {
  MessageSide,
  SpdySide,
  type TunnelSide,
  type TunnelSideEnd,
  type TunnelSideHandler,
} from "./tunnel-sides.ts";

export interface TunnelOptions {
  /** How each side carries SPDY/3.1: on its connection, or in WebSocket messages. */
  readonly client: "spdy" | "messages";
  readonly node: "spdy" | "messages";
  readonly webSocketLimits: WebSocketLimits;
  readonly spdyLimits: SpdyLimits;
}

/** An end that waits for the rest of the node's frame. */
interface PendingEnd {
  readonly end: SessionEnd;
  readonly closeCode: number;
  readonly untilMs: number;
}

/**
 * Carries port-forward where at least one side has SPDY/3.1 in WebSocket messages. PINGs of both sides
 * end here. A tunnel cannot be half-closed, so the client's FIN ends it.
 */
export class Tunnel implements StreamingSession {
  readonly #client: TunnelSide;
  readonly #node: TunnelSide;
  readonly #life: SessionLifecycle;
  readonly #ends: ForwardEndObserver;
  readonly #decoder: ForwardDecoder;
  readonly #silence: NodeSilence;
  #lastBeatMs: number;
  #pending: PendingEnd | undefined;

  constructor(
    downstream: UpgradedConnection,
    upstream: UpgradedConnection,
    options: TunnelOptions,
    life: SessionLifecycle,
  ) {
    this.#life = life;
    this.#lastBeatMs = life.clock.now();
    this.#silence = new NodeSilence(this.#lastBeatMs);
    const isMessages = options.node === "messages";
    const ends = new ForwardEndObserver(isMessages ? "" : "GOAWAY");
    this.#ends = ends;
    // A node that sends messages says farewell with a Close frame.
    const clientLeft = (how: string): void => ends.clientLeft(how);
    const farewells = isMessages ? { clientLeft, nodeLeft: () => {} } : ends;
    this.#decoder = new ForwardDecoder(options.spdyLimits, life.observers, farewells);
    const sideOf = (peer: "client" | "node", { socket }: UpgradedConnection, handler: TunnelSideHandler) =>
      options[peer] === "spdy"
        ? new SpdySide(peer, socket, handler, life)
        : new MessageSide(peer, socket, handler, life, options.webSocketLimits);
    this.#client = sideOf("client", downstream, {
      onBytes: (bytes) => this.#fromClient(bytes),
      onText: () => this.#refuseText(),
      onEnd: (end) => this.#clientEnded(end),
    });
    this.#node = sideOf("node", upstream, {
      onBytes: (bytes) => this.#fromNode(bytes),
      onText: () => {},
      onEnd: (end) => this.#nodeEnded(end),
    });
    const receive = (chunk: Uint8Array): void => {
      this.#silence.heard();
      this.#node.receive(chunk);
    };
    feed(upstream.socket, downstream.socket, receive, life.pace("node"));
    feed(downstream.socket, upstream.socket, (chunk) => this.#client.receive(chunk), life.pace("client"));
    downstream.socket.on("drain", () => this.#answerClient());
    if (upstream.head.byteLength > 0) receive(upstream.head);
    if (downstream.head.byteLength > 0) this.#client.receive(downstream.head);
  }

  tick(nowMs: number): void {
    this.#client.tick(nowMs);
    this.#node.tick(nowMs);
    if (this.#pending !== undefined) {
      if (nowMs >= this.#pending.untilMs) this.#endPending();
      return;
    }
    const { socket } = this.#node;
    const isHeldUp = socket.isPaused() || this.#client.socket.writableNeedDrain;
    if (!this.#silence.isQuiet(nowMs, isHeldUp) || socket.writableNeedDrain) return;
    const answer = this.#decoder.answerNode();
    if (answer !== undefined) this.#node.send(answer);
    if (nowMs - this.#lastBeatMs < this.#life.timeouts.spdyPingMs) return;
    this.#lastBeatMs = nowMs;
    const beat = this.#decoder.beatNode();
    if (beat !== undefined) this.#node.send(beat);
  }

  end(end: SessionEnd): void {
    this.#cut(end);
  }

  #fromNode(bytes: Uint8Array): void {
    if (this.#life.isOver) return;
    const end = this.#decoder.fromNode(bytes, this.#passDown);
    if (this.#pending !== undefined) this.#cut(this.#pending.end, this.#pending.closeCode);
    else if (end !== undefined) this.#cut(end);
  }

  readonly #passDown = (bytes: Uint8Array): void => {
    this.#life.downstreamBytes += bytes.byteLength;
    this.#client.send(bytes);
  };

  readonly #passUp = (bytes: Uint8Array): void => this.#node.send(bytes);

  #fromClient(bytes: Uint8Array): void {
    if (this.#life.isOver || this.#pending !== undefined) return;
    this.#life.upstreamBytes += bytes.byteLength;
    const end = this.#decoder.fromClient(bytes, this.#passUp);
    if (end === undefined) this.#answerClient();
    else this.#cut(end);
  }

  /** A client that does not read gets its answers once it reads again. */
  #answerClient(): void {
    if (this.#life.isOver || this.#client.socket.writableNeedDrain) return;
    const answer = this.#decoder.answerClient();
    if (answer !== undefined) this.#client.send(answer);
  }

  #refuseText(): void {
    const message = "the client sent a text message into a tunnel";
    this.#cut(faultOf("client", "protocol-error", message), CLOSE.UNSUPPORTED_DATA);
  }

  #clientEnded({ how, webSocket }: TunnelSideEnd): void {
    if (this.#life.isOver) return;
    this.#over(webSocket === undefined ? endOf("client-gone", how) : clientEnd(webSocket));
    this.#node.finish(CLOSE.NORMAL, "", true);
    this.#client.finish(CLOSE.NORMAL, "", true);
  }

  /** A WebSocket ends properly only with Close 1000. */
  #nodeEnded({ how, webSocket }: TunnelSideEnd): void {
    if (this.#life.isOver || this.#endPending()) return;
    if (webSocket === undefined) {
      const end = this.#ends.nodeEnd(how);
      const isProper = this.#ends.hasClientLeft || this.#decoder.hasNodeLeft;
      this.#end(end, isProper ? CLOSE.NORMAL : closeCodeFor(end));
    } else if (webSocket.isProtocolError) {
      const message = `the node sent malformed WebSocket: ${how}`;
      this.#end(faultOf("node", "protocol-error", message), CLOSE.INTERNAL_ERROR);
    } else if (webSocket.isClean) {
      const { code, reason } = webSocket;
      this.#ends.nodeLeft(code === CLOSE.NORMAL, `the node closed the tunnel with ${code}`);
      this.#end(this.#ends.nodeEnd(how), code, reason);
    } else this.#end(this.#ends.nodeEnd(how), CLOSE.INTERNAL_ERROR);
  }

  /** Ends the session early, after the node's present frame. */
  #cut(end: SessionEnd, closeCode: number = closeCodeFor(end)): void {
    if (this.#life.isOver) return;
    if (this.#decoder.stop()) this.#end(end, closeCode);
    else if (this.#pending === undefined) {
      const untilMs = this.#life.clock.now() + BOUNDARY_WAIT_MS;
      this.#pending = { end, closeCode, untilMs };
      setTimeout(() => this.#life.tick(untilMs), BOUNDARY_WAIT_MS).unref();
    }
  }

  /** The rest of the frame will not come. */
  #endPending(): boolean {
    if (this.#pending === undefined) return false;
    this.#end(this.#pending.end, this.#pending.closeCode);
    return true;
  }

  /**
   * Everything from the node has been written. Open streams are reset, and the client gets the
   * reason.
   */
  #end(end: SessionEnd, closeCode: number, reason: string = reasonOf(end)): void {
    if (this.#life.isOver) return;
    const isWhole = closeCode === CLOSE.NORMAL;
    const farewell = isWhole ? undefined : this.#decoder.failureFrame(end.message, end);
    this.#over(end);
    if (farewell !== undefined) this.#client.send(farewell);
    this.#client.finish(closeCode, reason, isWhole || farewell !== undefined || this.#decoder.hasNodeLeft);
    this.#node.finish(CLOSE.GOING_AWAY, "", true);
  }

  #over(end: SessionEnd): void {
    this.#life.end(end, this.#client.socket, this.#client.hasSentEnd);
  }
}
