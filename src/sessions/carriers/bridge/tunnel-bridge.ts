import type { Duplex } from "node:stream";
import { ProtocolError } from "../../../../protocols/protocol-error.ts";
import type { SpdyLimits } from "../../../../protocols/spdy/index.ts";
import type { WebSocketLimits } from "../../../../protocols/websocket/index.ts";
import { CLOSE } from "../../../../protocols/websocket/index.ts";
import { abortSocket } from "../../../net/abort-socket.ts";
import { feed } from "../../../net/feed.ts";
import { finishAndLinger } from "../../../net/linger.ts";
import type { UpgradedConnection } from "../../../net/upgraded-connection.ts";
import { ForwardDecoder } from "../../decoders/forward-decoder.ts";
import type { SessionLifecycle } from "../../lifecycle.ts";
import type { StreamingSession } from "../../session.ts";
import { endOf, faultOf, type SessionEnd } from "../../session-end.ts";
import { WebSocketConnection, type WebSocketEnd } from "../websocket-connection.ts";

const LEFT = "the client ended the session";

/**
 * Carries port-forward between plain SPDY/3.1 downstream and WebSocket messages upstream; each read
 * becomes one message. A tunnel cannot be half-closed, so the client's FIN ends it.
 */
export class TunnelBridge implements StreamingSession {
  readonly #downstream: Duplex;
  readonly #webSocket: WebSocketConnection;
  readonly #life: SessionLifecycle;
  readonly #decoder: ForwardDecoder;
  #clientLeaves = false;

  constructor(
    downstream: UpgradedConnection,
    upstream: UpgradedConnection,
    limits: WebSocketLimits,
    spdyLimits: SpdyLimits,
    life: SessionLifecycle,
  ) {
    const { clock, timeouts } = life;
    const farewells = {
      clientLeft: () => {
        this.#clientLeaves = true;
      },
      nodeLeft: () => {},
    };
    this.#decoder = new ForwardDecoder(spdyLimits, life.observers, farewells);
    const socket = downstream.socket;
    this.#downstream = socket;
    this.#life = life;
    this.#webSocket = new WebSocketConnection(
      upstream.socket,
      {
        onMessage: (part, _isFirst, _isLast, isText) => this.#fromUpstream(part, isText),
        onEnd: (end) => this.#upstreamEnded(end),
      },
      {
        role: "client",
        limits,
        lingerTimes: timeouts,
        clock,
        pingIntervalMs: timeouts.webSocketPingMs,
        pongIntervalMs: Number.POSITIVE_INFINITY,
      },
    );
    feed(upstream.socket, socket, (chunk) => this.#webSocket.receive(chunk), life.bandwidth?.direction());
    feed(socket, upstream.socket, (chunk) => this.#fromClient(chunk), life.bandwidth?.direction());
    socket.on("end", () => this.#clientGone("the client ended its connection"));
    socket.on("error", (error: Error) => this.#clientGone(error.message));
    socket.on("close", () => this.#clientGone("the client's connection closed"));
    if (upstream.head.byteLength > 0) this.#webSocket.receive(upstream.head);
    if (downstream.head.byteLength > 0) this.#fromClient(downstream.head);
  }

  tick(nowMs: number): void {
    this.#webSocket.tick(nowMs);
  }

  end(end: SessionEnd): void {
    this.#breakOff(end);
  }

  #fromUpstream(part: Uint8Array, isText: boolean): void {
    if (isText) throw new ProtocolError("malformed-message", "a text message in a tunnel");
    if (part.byteLength === 0 || this.#life.isOver) return;
    this.#life.downstreamBytes += part.byteLength;
    const end = this.#decoder.fromNode(part, this.#passDown);
    if (end !== undefined) this.#breakOff(end);
  }

  readonly #passDown = (bytes: Uint8Array): void => {
    if (this.#downstream.writable) this.#downstream.write(bytes);
  };

  readonly #passUp = (bytes: Uint8Array): void => {
    this.#webSocket.sendMessage(undefined, bytes);
  };

  #fromClient(chunk: Uint8Array): void {
    if (this.#life.isOver) return;
    const end = this.#decoder.fromClient(chunk, this.#passUp);
    if (end !== undefined) {
      this.#breakOff(end);
      return;
    }
    this.#life.upstreamBytes += chunk.byteLength;
    const answer = this.#decoder.answerClient();
    if (answer !== undefined) this.#passDown(answer);
  }

  /** Only Close 1000 is a proper end. After any other, the client must not take its data for complete. */
  #upstreamEnded({ isClean, isProtocolError, code, reason }: WebSocketEnd): void {
    if (isClean && code === CLOSE.NORMAL) {
      this.#over(
        this.#clientLeaves ? endOf("client-gone", LEFT) : endOf("completed", "the node ended the connection"),
      );
      finishAndLinger(this.#downstream, this.#life.timeouts, this.#life.clock);
      return;
    }
    if (isProtocolError) {
      this.#over(faultOf("node", "protocol-error", `the node sent malformed WebSocket: ${reason}`));
    } else {
      this.#over(endOf("upstream-lost", isClean ? `the node closed the tunnel with ${code}` : reason));
    }
    abortSocket(this.#downstream);
  }

  #clientGone(reason: string): void {
    if (this.#life.isOver) return;
    this.#over(endOf("client-gone", reason));
    this.#webSocket.close(CLOSE.NORMAL, "");
    finishAndLinger(this.#downstream, this.#life.timeouts, this.#life.clock);
  }

  #breakOff(end: SessionEnd): void {
    if (this.#life.isOver) return;
    this.#over(end);
    this.#webSocket.close(CLOSE.GOING_AWAY, "");
    abortSocket(this.#downstream);
  }

  #over(end: SessionEnd): void {
    this.#life.end(end, this.#downstream);
  }
}
