import { NOTHING } from "../../../protocols/bytes/index.ts";
import {
  CHANNEL,
  ChannelDemux,
  type RemoteCommandVersion,
  type RequestedStreams,
  type StreamType,
  spdyStreamTypes,
  specOf,
} from "../../../protocols/remotecommand/index.ts";
import type { SpdyLimits, SpdyStream, SpdyStreamHandler } from "../../../protocols/spdy/index.ts";
import type { WebSocketLimits } from "../../../protocols/websocket/index.ts";
import { CLOSE } from "../../../protocols/websocket/index.ts";
import { feed } from "../../net/feed.ts";
import { ReadAhead } from "../../net/read-ahead.ts";
import type { UpgradedConnection } from "../../net/upgraded-connection.ts";
import type { SessionLifecycle } from "../lifecycle.ts";
import { CommandResult, type Conclusion, failedBy } from "../observers/command-result.ts";
import { RESIZE, STDERR, STDIN, STDOUT } from "../observers/session-observer.ts";
import type { StreamingSession } from "../session.ts";
import { type CauseOfOurs, endOf, faultOf, type SessionEnd } from "../session-end.ts";
import { CloseTimeout } from "./close-timeout.ts";
import { leaveBehindInput } from "./input-grace.ts";
import { InputHold } from "./input-hold.ts";
import { SpdyConnection, type SpdyConnectionEnd } from "./spdy-connection.ts";
import { terminalWarning } from "./terminal-warning.ts";
import { clientEnd, WebSocketConnection, type WebSocketEnd } from "./websocket-connection.ts";

export interface TranslatorOptions {
  readonly requested: RequestedStreams;
  /** What the upstream chose; its error stream speaks text up to v3 and Status JSON from v4. */
  readonly upstreamVersion: RemoteCommandVersion;
  /** The upstream's Status is rewritten as a kubelet's translator does (docs/decisions/0002-status-verbatim.md). */
  readonly rewritesStatus?: boolean;
  readonly webSocketLimits: WebSocketLimits;
  readonly spdyLimits: SpdyLimits;
  readonly maxQueuedBytes: number;
  /** The process is the container's own: it does not end with this session's input, and is not waited for. */
  readonly isAttach?: boolean;
}

/**
 * Carries one exec or attach: `v5.channel.k8s.io` over WebSocket downstream, SPDY/3.1 streams upstream (KEP-4006).
 *
 * Both upgrades are done when it starts. Payload goes from one framing into the other in the parts in which it is
 * read. The end is the upstream's word: its status is passed on as it came, after all output, then Close 1000; an
 * upstream that ends without one becomes a Failure that says so, never silence, which clients take for exit code 0.
 */
export class Translator implements StreamingSession {
  readonly #options: TranslatorOptions;
  readonly #webSocket: WebSocketConnection;
  readonly #spdy: SpdyConnection;
  readonly #life: SessionLifecycle;
  readonly #result: CommandResult;
  readonly #overdueEnd = new CloseTimeout();
  readonly #hold: InputHold;
  #stdin: SpdyStream | undefined;
  #resize: SpdyStream | undefined;
  #unrepliedStreams = 0;
  #runningOutputs = 0;

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
      {
        role: "server",
        limits: options.webSocketLimits,
        lingerTimes: timeouts,
        clock,
        pingIntervalMs: timeouts.webSocketPingMs,
        pongIntervalMs: timeouts.unsolicitedPongMs,
      },
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
    const ahead = new ReadAhead();
    const pace = () => life.bandwidth?.direction();
    feed(upstream.socket, downstream.socket, (chunk) => this.#fromUpstream(chunk), pace(), ahead);
    const input = feed(downstream.socket, upstream.socket, (chunk) => this.#webSocket.receive(chunk), pace());
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

  end(cause: CauseOfOurs, message: string): void {
    this.#fail(endOf(cause, message));
  }

  #start(downstream: UpgradedConnection, upstream: UpgradedConnection): void {
    const { requested, upstreamVersion } = this.#options;
    // The first message names the first output channel and carries nothing (wsstream does it, and clients wait for it).
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
    if (type === "stdin") this.#stdin = stream;
    else if (type === "resize") this.#resize = stream;
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
        // RST after the status is how Kubernetes' servers end the error stream.
        onEnd: (end) => this.#errorStreamEnded(end.type === "reset"),
      };
    }
    // What the upstream says on stdin or resize means nothing; their end comes with the process's.
    return { onReply, onData: () => {}, onEnd: () => {} };
  }

  #outputHandler(channel: number, onReply: () => void): SpdyStreamHandler {
    return {
      onReply,
      onData: (part, fin) => {
        // Never an empty message: client-go fails on one (reference client: "read stream id: EOF").
        if (part.byteLength > 0) {
          this.#life.downstreamBytes += part.byteLength;
          this.#life.observers.data(channel === CHANNEL.STDOUT ? STDOUT : STDERR, "node", part);
          this.#webSocket.sendMessage(channel, part);
        }
        if (fin) this.#outputEnded();
      },
      onEnd: () => this.#outputEnded(),
    };
  }

  /** Channels that only the server writes, unknown ones and those not asked for are dropped, as wsstream drops them. */
  #fromClient(channel: number, part: Uint8Array): void {
    if (part.byteLength === 0) return;
    if (channel === CHANNEL.STDIN) {
      this.#life.upstreamBytes += part.byteLength;
      this.#life.observers.data(STDIN, "client", part);
      this.#hold.pass(this.#writeStdin, part);
    } else if (channel === CHANNEL.RESIZE) {
      this.#life.observers.data(RESIZE, "client", part);
      // Without a TTY there is no resize stream; the reference hangs on the second size then.
      this.#hold.pass(this.#writeResize, part);
    }
  }

  #channelClosed(channel: number): void {
    if (channel === CHANNEL.STDIN) {
      this.#life.observers.streamEnd(STDIN, "client");
      this.#hold.pass(this.#finishStdin, NOTHING);
    }
    if (channel === CHANNEL.RESIZE) this.#hold.pass(this.#finishResize, NOTHING);
  }

  readonly #writeStdin = (part: Uint8Array): void => {
    if (!this.#result.isComplete) this.#stdin?.write(part);
  };

  readonly #writeResize = (part: Uint8Array): void => {
    if (!this.#result.isComplete) this.#resize?.write(part);
  };

  readonly #finishResize = (): void => {
    if (!this.#result.isComplete) this.#resize?.finish();
  };

  readonly #finishStdin = (): void => {
    if (!this.#result.isComplete) this.#stdin?.finish();
  };

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
    // What was accepted is still delivered: stdin ends after it, and the connection lingers until the node closes.
    this.#hold.flush();
    this.#finishStdin();
    this.#over(clientEnd(end));
    const leave = (): void => this.#spdy.leave();
    if (end.isClean && this.#stdin !== undefined && this.#options.isAttach !== true)
      leaveBehindInput(this.#spdy.socket, this.#life.clock, leave);
    else leave();
  }

  /** Only at a terminal: other output stays as the command wrote it. */
  warn(message: string): void {
    const { tty, stdout } = this.#options.requested;
    if (!tty || !stdout) return;
    this.#webSocket.sendMessage(CHANNEL.STDOUT, terminalWarning(message));
  }

  /** All output is passed on: now the status, then Close. */
  #finish(): void {
    if (!this.#life.isOver) this.#conclude(this.#result.conclude());
  }

  #fail(end: SessionEnd): void {
    if (!this.#life.isOver) this.#conclude(failedBy(end));
  }

  #conclude({ status, end }: Conclusion): void {
    this.#over(end);
    // In one write: a client that exits with the status was handed all of it.
    this.#webSocket.socket.cork();
    this.#webSocket.sendMessage(CHANNEL.ERROR, status);
    this.#webSocket.close(CLOSE.NORMAL, "");
    this.#webSocket.socket.uncork();
    // Cut by us, the command must not run on: see leave().
    if (end.cause === "completed") this.#spdy.finish();
    else this.#spdy.leave();
  }

  #over(end: SessionEnd): void {
    this.#hold.drop();
    this.#life.end(end, this.#webSocket.socket, () => this.#webSocket.hasSentClose);
  }
}
