import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { faultOf, type SessionEnd } from "@sluice/client/internal/sessions/session-end";
import { SpdyConnection, type SpdyConnectionEnd } from "@sluice/client/internal/sessions/spdy-connection";
import {
  clientEnd,
  WebSocketConnection,
  type WebSocketEnd,
  webSocketOptions,
} from "@sluice/client/internal/sessions/websocket-connection";
import { NOTHING } from "@sluice/protocols/bytes";
import {
  CHANNEL,
  ChannelDemux,
  type RemoteCommandVersion,
  type RequestedStreams,
  type StreamType,
  spdyStreamTypes,
  specOf,
} from "@sluice/protocols/remotecommand";
import type { SpdyLimits, SpdyStreamHandler } from "@sluice/protocols/spdy";
import { CLOSE, type WebSocketLimits } from "@sluice/protocols/websocket";
import { feed } from "../../net/feed.ts";
import { ReadAhead } from "../../net/read-ahead.ts";
import type { SessionLifecycle } from "../lifecycle.ts";
import { CommandResult, type Conclusion, failedBy } from "../observers/command-result.ts";
import { RESIZE, STDERR, STDIN, STDOUT } from "../observers/session-observer.ts";
import type { InputResult, StreamingSession } from "../session.ts";
import { CloseTimeout, leaveBehindInput } from "./end-waits.ts";
import { InputHold, SpdyInput } from "./input-hold.ts";
import { terminalWarning } from "./terminal-warning.ts";

interface TranslatorOptions {
  readonly requested: RequestedStreams;
  /** The version that the upstream chose. Its error stream is text up to v3, and Status JSON from v4. */
  readonly upstreamVersion: RemoteCommandVersion;
  /** Rewrites the upstream's Status as a kubelet's translator does (docs/decisions/0002-status-verbatim.md). */
  readonly rewritesStatus?: boolean;
  readonly webSocketLimits: WebSocketLimits;
  readonly spdyLimits: SpdyLimits;
  readonly maxQueuedBytes: number;
  /**
   * An attached process is the container's own: it outlives this session's input, so nothing waits
   * for it to end.
   */
  readonly isAttach?: boolean;
}

/**
 * Carries one exec or attach: `v5.channel.k8s.io` over WebSocket downstream, SPDY/3.1 streams upstream
 * (KEP-4006). The upstream decides the end: its status follows all output unchanged, then Close 1000.
 * If it ends without a status, the client gets a Failure: clients take silence for exit code 0.
 */
export class Translator implements StreamingSession {
  readonly #options: TranslatorOptions;
  readonly #webSocket: WebSocketConnection;
  readonly #spdy: SpdyConnection;
  readonly #life: SessionLifecycle;
  readonly #result: CommandResult;
  readonly #overdueEnd = new CloseTimeout();
  readonly #hold: InputHold;
  readonly #input = new SpdyInput(() => this.#result.isComplete);
  #unrepliedStreams = 0;
  #runningOutputs = 0;
  #isFinishing = false;

  constructor(
    downstream: UpgradedConnection,
    upstream: UpgradedConnection,
    options: TranslatorOptions,
    life: SessionLifecycle,
  ) {
    const { clock, timeouts } = life;
    this.#options = options;
    this.#life = life;
    this.#result = new CommandResult(options.upstreamVersion, options.rewritesStatus);
    const demux = new ChannelDemux(specOf("v5.channel.k8s.io"), {
      onChannelData: (channel, part) => this.#fromClient(channel, part),
      onChannelClose: (channel) => this.#channelClosed(channel),
    });
    this.#webSocket = new WebSocketConnection(
      downstream.socket,
      {
        onMessage: (part, isFirst, isLast) => demux.push(part, isFirst, isLast),
        onEnd: (end) => this.#clientEnded(end),
      },
      webSocketOptions("server", options.webSocketLimits, life),
    );
    this.#spdy = new SpdyConnection(
      upstream.socket,
      { onEnd: (end) => this.#upstreamEnded(end) },
      {
        role: "client",
        limits: options.spdyLimits,
        lingerTimes: timeouts,
        clock,
        pingIntervalMs: timeouts.spdyPingMs,
        maxQueuedBytes: options.maxQueuedBytes,
      },
    );
    const ahead = new ReadAhead(life.info?.user ?? "");
    const [node, client] = [upstream.socket, downstream.socket];
    feed(node, client, (chunk) => this.#fromUpstream(chunk), life.pace("node"), ahead);
    const input = feed(client, node, (chunk) => this.#webSocket.receive(chunk), life.pace("client"));
    this.#hold = new InputHold(ahead, input, options.requested.tty, () => this.#result.isComplete);
    this.#start(downstream, upstream);
  }

  tick(nowMs: number): void {
    this.#webSocket.tick(nowMs);
    this.#spdy.tick(nowMs);
    const { timeouts } = this.#life;
    if (this.#unrepliedStreams > 0 && nowMs - this.#life.startedMs >= timeouts.streamCreationMs) {
      this.#fail(faultOf("node", "stream-creation-timeout", "the node did not accept the streams in time"));
    } else if (this.#overdueEnd.isDue(nowMs, this.#life.downstreamBytes, this.#spdy.socket.isPaused())) {
      this.#finish();
    }
  }

  end(end: SessionEnd): void {
    this.#fail(end);
  }

  get readsInput(): boolean {
    return !this.#life.isOver && this.#input.readsStdin;
  }

  input(bytes: Uint8Array, by: string): InputResult {
    if (!this.readsInput) return "no-input";
    if (this.#webSocket.isInMessage || !this.#hold.takes(bytes, this.#spdy.socket)) return "later";
    if (this.#life.observers.isRefused(this, { ...STDIN, by }, "client", bytes)) return "no-input";
    this.#life.upstreamBytes += bytes.byteLength;
    this.#hold.pass(this.#input.writeStdin, bytes);
    return "taken";
  }

  #start(downstream: UpgradedConnection, upstream: UpgradedConnection): void {
    const { requested, upstreamVersion } = this.#options;
    // Like wsstream, sends an empty message on the first output channel; clients wait for it.
    downstream.socket.cork();
    const first = requested.stdout ? CHANNEL.STDOUT : requested.stderr ? CHANNEL.STDERR : CHANNEL.ERROR;
    this.#webSocket.sendMessage(first, NOTHING);
    upstream.socket.cork();
    for (const type of spdyStreamTypes(requested, upstreamVersion)) this.#open(type);
    if (upstream.head.byteLength > 0) this.#spdy.receive(upstream.head);
    if (downstream.head.byteLength > 0) this.#webSocket.receive(downstream.head);
    upstream.socket.uncork();
    downstream.socket.uncork();
  }

  #fromUpstream(chunk: Uint8Array): void {
    this.#spdy.receive(chunk);
    this.#hold.heard(chunk.byteLength);
  }

  #open(type: StreamType): void {
    this.#unrepliedStreams += 1;
    const stream = this.#spdy.openStream([["streamtype", type]], this.#handlerOf(type));
    if (type === "stdin") this.#input.stdin = stream;
    else if (type === "resize") this.#input.resize = stream;
    else this.#runningOutputs += 1;
  }

  #handlerOf(type: StreamType): SpdyStreamHandler {
    const onReply = (): void => {
      this.#unrepliedStreams -= 1;
    };
    if (type === "stdout") return this.#outputHandler(CHANNEL.STDOUT, onReply);
    if (type === "stderr") return this.#outputHandler(CHANNEL.STDERR, onReply);
    if (type === "error") {
      return {
        onReply,
        onData: (part, fin) => {
          if (part.byteLength > 0) this.#life.observers.status(part);
          this.#result.receive(part);
          if (this.#result.isComplete) this.#overdueEnd.statusCame(this.#life.clock.now());
          if (fin) this.#errorStreamEnded(true);
        },
        // Kubernetes' servers end the error stream with RST after the status.
        onEnd: (end) => this.#errorStreamEnded(end.type === "reset"),
      };
    }
    // Upstream data on stdin or resize has no meaning. Both streams end with the process.
    return { onReply, onData: () => {}, onEnd: () => {} };
  }

  #outputHandler(channel: number, onReply: () => void): SpdyStreamHandler {
    return {
      onReply,
      onData: (part, fin) => {
        // client-go fails on an empty message ("read stream id: EOF").
        if (part.byteLength > 0) {
          const stream = channel === CHANNEL.STDOUT ? STDOUT : STDERR;
          if (this.#life.observers.isRefused(this, stream, "node", part)) return;
          this.#life.downstreamBytes += part.byteLength;
          this.#webSocket.sendMessage(channel, part);
        }
        if (fin) this.#outputEnded();
      },
      onEnd: () => this.#outputEnded(),
    };
  }

  /** Like wsstream, drops data on unknown or unrequested channels, and on those that only servers write. */
  #fromClient(channel: number, part: Uint8Array): void {
    if (part.byteLength === 0) return;
    if (channel !== CHANNEL.STDIN && channel !== CHANNEL.RESIZE) return;
    const isInput = channel === CHANNEL.STDIN;
    if (this.#life.observers.isRefused(this, isInput ? STDIN : RESIZE, "client", part)) return;
    if (isInput) this.#life.upstreamBytes += part.byteLength;
    // Without a TTY there is no resize stream. The reference hangs there on the second size.
    this.#hold.pass(isInput ? this.#input.writeStdin : this.#input.writeResize, part);
  }

  #channelClosed(channel: number): void {
    if (channel === CHANNEL.STDIN) {
      this.#life.observers.streamEnd(STDIN, "client");
      this.#hold.pass(this.#input.finishStdin, NOTHING);
    }
    if (channel === CHANNEL.RESIZE) this.#hold.pass(this.#input.finishResize, NOTHING);
  }

  #errorStreamEnded(isOrderly: boolean): void {
    if (isOrderly) this.#life.observers.statusEnd();
    this.#result.end(isOrderly);
    this.#outputEnded();
  }

  #outputEnded(): void {
    this.#runningOutputs -= 1;
    if (this.#runningOutputs === 0) this.#finish();
  }

  #upstreamEnded(end: SpdyConnectionEnd): void {
    if (this.#life.isOver) return;
    if (end.isProtocolError) {
      this.#fail(faultOf("node", "protocol-error", `the node sent malformed SPDY: ${end.reason}`));
    } else {
      this.#finish();
    }
  }

  #clientEnded(end: WebSocketEnd): void {
    // Delivers the accepted input, then ends stdin. The connection lingers until the node closes.
    this.#hold.flush();
    this.#input.finishStdin();
    this.#over(clientEnd(end));
    const leave = (): void => this.#spdy.leave();
    if (end.isClean && this.#input.stdin !== undefined && this.#options.isAttach !== true)
      leaveBehindInput(this.#spdy.socket, this.#life.clock, leave);
    else leave();
  }

  /** Warns only at a terminal: other output must stay as the command wrote it. */
  warn(message: string): void {
    const { tty, stdout } = this.#options.requested;
    if (!tty || !stdout) return;
    this.#webSocket.sendMessage(CHANNEL.STDOUT, terminalWarning(message));
  }

  /** All output has been passed on: sends the status, then Close. */
  #finish(): void {
    if (this.#life.isOver || this.#isFinishing) return;
    this.#isFinishing = true;
    this.#life.passReport(() => this.#conclude(this.#result.conclude()));
  }

  #fail(end: SessionEnd): void {
    if (!this.#life.isOver) this.#conclude(failedBy(end));
  }

  #conclude({ status, end }: Conclusion): void {
    this.#over(end);
    // Sent in one write, so that a client that exits once it has the status has received all of it.
    this.#webSocket.socket.cork();
    this.#webSocket.sendMessage(CHANNEL.ERROR, status);
    this.#webSocket.close(CLOSE.NORMAL, "");
    this.#webSocket.socket.uncork();
    // The gateway ended the session, so the command must stop, too (see SpdyConnection.leave).
    if (end.cause === "completed") this.#spdy.finish();
    else this.#spdy.leave();
  }

  #over(end: SessionEnd): void {
    this.#hold.drop();
    this.#life.end(end, this.#webSocket.socket, () => this.#webSocket.hasSentClose);
  }
}
