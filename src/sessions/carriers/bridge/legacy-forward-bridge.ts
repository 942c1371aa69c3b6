import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { sendChannelMessage } from "@sluice/client/internal/sessions/channel-message";
import {
  closeCodeFor,
  endOf,
  faultOf,
  reasonOf,
  type SessionEnd,
} from "@sluice/client/internal/sessions/session-end";
import {
  clientEnd,
  WebSocketConnection,
  type WebSocketEnd,
} from "@sluice/client/internal/sessions/websocket-connection";
import { ProtocolError } from "@sluice/protocols";
import {
  dataChannelOf,
  encodePortPrefix,
  errorChannelOf,
  streamHeaders,
} from "@sluice/protocols/portforward";
import { ChannelDemux, type ChannelFraming } from "@sluice/protocols/remotecommand";
import { RST, type SpdyLimits, SpdySession } from "@sluice/protocols/spdy";
import type { WebSocketLimits } from "@sluice/protocols/websocket";
import { CLOSE } from "@sluice/protocols/websocket";
import { feed } from "../../../net/feed.ts";
import type { SessionLifecycle } from "../../lifecycle.ts";
import { legacyStreams, type SessionStream, type Side } from "../../observers/session-observer.ts";
import type { StreamingSession } from "../../session.ts";
import { leaveBehindInput } from "../end-waits.ts";
import { ForwardedPort } from "./forwarded-port.ts";

interface LegacyForwardOptions {
  /** In request order: port i uses channels 2i (data) and 2i + 1 (errors). */
  readonly ports: readonly number[];
  readonly isBase64: boolean;
  readonly webSocketLimits: WebSocketLimits;
  readonly spdyLimits: SpdyLimits;
}

/**
 * Carries legacy port-forward, with two channels for each port, as SPDY streams in a tunnel. It opens
 * one connection to each port at once; the WebSocket ends when all of them have ended.
 */
export class LegacyForwardBridge implements StreamingSession {
  readonly #framing: ChannelFraming;
  readonly #client: WebSocketConnection;
  readonly #tunnel: WebSocketConnection;
  readonly #spdy: SpdySession;
  readonly #ports: readonly ForwardedPort[];
  readonly #life: SessionLifecycle;
  readonly #streams: readonly SessionStream[];
  #unsent: Uint8Array[] = [];
  /** The client has closed properly, and the node still delivers what it sent. */
  #isAwaitingPorts = false;

  constructor(
    downstream: UpgradedConnection,
    upstream: UpgradedConnection,
    options: LegacyForwardOptions,
    life: SessionLifecycle,
  ) {
    const { clock, timeouts } = life;
    this.#framing = { isBase64: options.isBase64, hasClose: false };
    this.#life = life;
    this.#streams = legacyStreams(options.ports);
    const demux = new ChannelDemux(this.#framing, {
      onChannelData: (channel, part) => this.#fromClient(channel, part),
      onChannelClose: () => {},
    });
    const common = { limits: options.webSocketLimits, lingerTimes: timeouts, clock };
    const pingIntervalMs = timeouts.webSocketPingMs;
    this.#client = new WebSocketConnection(
      downstream.socket,
      {
        onMessage: (part, isFirst, isLast) => demux.push(part, isFirst, isLast),
        onEnd: (end) => this.#clientEnded(end),
      },
      { ...common, role: "server", pingIntervalMs, pongIntervalMs: timeouts.unsolicitedPongMs },
    );
    this.#tunnel = new WebSocketConnection(
      upstream.socket,
      {
        onMessage: (part, _isFirst, _isLast, isText) => this.#fromUpstream(part, isText),
        onEnd: (end) => this.#upstreamEnded(end),
      },
      { ...common, role: "client", pingIntervalMs, pongIntervalMs: Number.POSITIVE_INFINITY },
    );
    this.#spdy = new SpdySession(
      "client",
      { send: (bytes) => this.#unsent.push(bytes), onStream: () => RST.REFUSED_STREAM },
      options.spdyLimits,
    );
    feed(upstream.socket, downstream.socket, (chunk) => this.#tunnel.receive(chunk), life.pace("node"));
    feed(downstream.socket, upstream.socket, (chunk) => this.#client.receive(chunk), life.pace("client"));
    downstream.socket.cork();
    this.#ports = options.ports.map((port, index) => this.#open(port, index));
    this.#flush();
    if (upstream.head.byteLength > 0) this.#tunnel.receive(upstream.head);
    if (downstream.head.byteLength > 0) this.#client.receive(downstream.head);
    downstream.socket.uncork();
  }

  tick(nowMs: number): void {
    this.#client.tick(nowMs);
    this.#tunnel.tick(nowMs);
    const hasTimeToOpen = nowMs - this.#life.startedMs < this.#life.timeouts.streamCreationMs;
    for (const port of this.#ports) port.tick(nowMs, hasTimeToOpen);
    this.#flush();
    this.#endIfAllOver();
  }

  end(end: SessionEnd): void {
    this.#breakOff(end, closeCodeFor(end));
  }

  #open(port: number, index: number): ForwardedPort {
    const { observers } = this.#life;
    const send = (channel: number, payload: Uint8Array): void => {
      if (!this.#life.isOver) sendChannelMessage(this.#client, this.#framing, channel, payload);
    };
    const dataChannel = dataChannelOf(index);
    const errorChannel = errorChannelOf(index);
    const [dataStream, errorStream] = [dataChannel, errorChannel].map(
      (channel) => this.#streams[channel],
    ) as [SessionStream, SessionStream];
    observers.stream(errorStream);
    observers.stream(dataStream);
    send(dataChannel, encodePortPrefix(port));
    send(errorChannel, encodePortPrefix(port));
    const forwarded = new ForwardedPort(port, {
      sendData: (part) => {
        if (!this.#life.isOver) this.#life.downstreamBytes += part.byteLength;
        send(dataChannel, part);
      },
      isRefused: (type, part) => this.#isRefused(type === "data" ? dataStream : errorStream, "node", part),
      observeEnd: (type) => {
        if (!this.#life.isOver) observers.streamEnd(type === "data" ? dataStream : errorStream, "node");
      },
      sendError: (text) => send(errorChannel, text),
      now: () => this.#life.clock.now(),
    });
    const headers = (streamType: "error" | "data") =>
      streamHeaders({ streamType, port, requestId: String(index) });
    const error = this.#spdy.openStream(headers("error"), forwarded.errorHandler);
    error.finish();
    forwarded.attach(this.#spdy.openStream(headers("data"), forwarded.dataHandler));
    return forwarded;
  }

  /** Ignores error channels, which only the server writes, and channels without a port. */
  #fromClient(channel: number, part: Uint8Array): void {
    const port = channel % 2 === 0 ? this.#ports[channel / 2] : undefined;
    if (port === undefined || part.byteLength === 0 || this.#life.isOver) return;
    const stream = this.#streams[channel];
    if (stream !== undefined && this.#isRefused(stream, "client", part)) return;
    this.#life.upstreamBytes += part.byteLength;
    port.write(part);
    this.#flush();
  }

  /** True if an observer refused the part, which ends the session. */
  #isRefused(stream: SessionStream, from: Side, part: Uint8Array): boolean {
    if (this.#life.isOver) return false;
    const refusal = this.#life.observers.data(stream, from, part);
    if (refusal !== undefined) this.#breakOff(refusal, closeCodeFor(refusal));
    return refusal !== undefined;
  }

  #fromUpstream(part: Uint8Array, isText: boolean): void {
    if (isText) throw new ProtocolError("malformed-message", "a text message in a tunnel");
    if (this.#life.isOver && !this.#isAwaitingPorts) return;
    this.#spdy.receive(part);
    this.#flush();
    if (this.#isAwaitingPorts) {
      if (this.#spdy.isOver || this.#ports.every(({ isOver }) => isOver)) this.#leaveTunnel();
      return;
    }
    this.#endIfAllOver();
    if (this.#spdy.isOver)
      this.#breakOff(endOf("upstream-lost", "the node ended the session"), CLOSE.INTERNAL_ERROR);
  }

  /**
   * Sends the frames that one read caused as one message. They are copied, because masking changes them
   * in place.
   */
  #flush(): void {
    if (this.#unsent.length === 0) return;
    const parts = this.#unsent;
    this.#unsent = [];
    this.#tunnel.sendMessage(undefined, Buffer.concat(parts));
  }

  #endIfAllOver(): void {
    if (this.#life.isOver || this.#ports.some(({ isOver }) => !isOver)) return;
    this.#over(endOf("completed", "all connections ended"));
    this.#client.close(CLOSE.NORMAL, "");
    this.#tunnel.close(CLOSE.NORMAL, "");
  }

  /**
   * Delivers the accepted data, then ends every port. A proper Close is the only end of input that the
   * client has: the node may deliver all of it before the tunnel ends.
   */
  #clientEnded(end: WebSocketEnd): void {
    if (this.#life.isOver) return;
    this.#over(clientEnd(end));
    for (const port of this.#ports) port.finish();
    this.#flush();
    this.#isAwaitingPorts = end.isClean;
    if (end.isClean) leaveBehindInput(this.#tunnel.socket, this.#life.clock, () => this.#leaveTunnel());
    else this.#leaveTunnel();
  }

  #leaveTunnel(): void {
    this.#isAwaitingPorts = false;
    this.#tunnel.close(CLOSE.NORMAL, "");
  }

  #upstreamEnded({ isClean, isProtocolError, code, reason }: WebSocketEnd): void {
    const end = isProtocolError
      ? faultOf("node", "protocol-error", `the node broke the protocol: ${reason}`)
      : endOf("upstream-lost", isClean ? `the node closed the tunnel with ${code}` : reason);
    this.#breakOff(end, CLOSE.INTERNAL_ERROR);
  }

  #breakOff(end: SessionEnd, closeCode: number): void {
    if (this.#life.isOver) return;
    for (const port of this.#ports) port.fail(reasonOf(end));
    this.#over(end);
    this.#client.close(closeCode, reasonOf(end));
    this.#tunnel.close(CLOSE.GOING_AWAY, "");
  }

  #over(end: SessionEnd): void {
    this.#life.end(end, this.#client.socket, () => this.#client.hasSentClose);
  }
}
