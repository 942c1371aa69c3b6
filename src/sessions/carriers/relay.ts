import type { Duplex } from "node:stream";
import { abortSocket } from "../../net/abort-socket.ts";
import { feed } from "../../net/feed.ts";
import { finishAndLinger, queuedBytesOf } from "../../net/linger.ts";
import { ReadAhead } from "../../net/read-ahead.ts";
import type { UpgradedConnection } from "../../net/upgraded-connection.ts";
import type { PassThroughDecoder } from "../decoders/pass-through-decoder.ts";
import type { SessionLifecycle } from "../lifecycle.ts";
import type { EndObserver } from "../observers/end-observer.ts";
import type { StreamingSession } from "../session.ts";
import { type CauseOfOurs, endOf, type SessionEnd } from "../session-end.ts";
import { InputHold } from "./input-hold.ts";
import { NodeSilence } from "./node-silence.ts";

/** A session that the gateway ends within a frame of the node's waits so long for the frame's end. */
export const BOUNDARY_WAIT_MS = 2_000;

/** How a relay knows what it carries. */
export interface RelayedSession {
  /** Decodes it for the lifecycle's observers. Absent: bytes are bytes. */
  readonly decoder?: PassThroughDecoder | undefined;
  /** Knows from the decoder how the session ends. Absent: the node's FIN completes it. */
  readonly ends?: EndObserver | undefined;
  /** The node closes its socket behind its result, with output queued. Absent: it does not. */
  readonly closesBehindResult?: boolean | undefined;
  readonly isTerminal?: boolean | undefined;
}

/**
 * Passes bytes through; heartbeats end here. A client's FIN ends its input only; the node's ends the session behind all its output, where
 * kube-apiserver cuts the tail.
 */
export class Relay implements StreamingSession {
  readonly #downstream: Duplex;
  readonly #upstream: Duplex;
  readonly #life: SessionLifecycle;
  readonly #ends: EndObserver | undefined;
  readonly #decoder: PassThroughDecoder | undefined;
  readonly #silence: NodeSilence;
  readonly #hold: InputHold | undefined;
  #downstreamEndedMs: number | undefined;
  #lastNodeBeatMs: number;
  #lastClientBeatMs: number;
  /** An end that waits for the end of a frame. */
  #pending: { readonly end: SessionEnd; readonly message: string; readonly untilMs: number } | undefined;
  #isResultWritten = false;
  #isResultSent = false;
  #hasPassedOutput = false;
  #hasPassedInput = false;

  constructor(
    downstream: UpgradedConnection,
    upstream: UpgradedConnection,
    life: SessionLifecycle,
    { decoder, ends, closesBehindResult, isTerminal = false }: RelayedSession = {},
  ) {
    this.#ends = ends;
    this.#decoder = decoder;
    this.#downstream = downstream.socket;
    this.#upstream = upstream.socket;
    this.#life = life;
    this.#lastNodeBeatMs = this.#lastClientBeatMs = life.clock.now();
    this.#silence = new NodeSilence(this.#lastNodeBeatMs);
    const ahead = closesBehindResult ? new ReadAhead() : undefined;
    const pace = () => life.bandwidth?.direction();
    feed(this.#upstream, this.#downstream, (chunk) => this.#toDownstream(chunk), pace(), ahead);
    const input = feed(this.#downstream, this.#upstream, (chunk) => this.#toUpstream(chunk), pace());
    if (ahead !== undefined)
      this.#hold = new InputHold(ahead, input, isTerminal, () => ends?.hasResult === true);
    this.#upstream.on("end", () => this.#upstreamEnded());
    this.#downstream.on("end", () => this.#downstreamEnded());
    this.#downstream.on("drain", () => this.#answerClient());
    this.#upstream.on("error", (error: Error) => this.#upstreamBroke(error.message));
    this.#downstream.on("error", (error: Error) => this.#clientBroke(error.message));
    this.#upstream.on("close", () => this.#upstreamBroke("the node's connection closed"));
    this.#downstream.on("close", () => this.#clientBroke("the client's connection closed"));
    if (upstream.head.byteLength > 0) this.#toDownstream(upstream.head);
    if (downstream.head.byteLength > 0) this.#toUpstream(downstream.head);
  }

  tick(nowMs: number): void {
    if (this.#pending !== undefined) {
      if (nowMs >= this.#pending.untilMs) this.#cutNow(this.#pending.end, this.#pending.message);
      return;
    }
    if (this.#isAbandoned(nowMs))
      this.#clientBroke("the client ended its connection, and the node says nothing more");
    else this.#beat(nowMs);
  }

  end(cause: CauseOfOurs, message: string): void {
    this.#cut(endOf(cause, message));
  }

  #toDownstream(chunk: Uint8Array): void {
    this.#silence.heard();
    if (this.#decoder === undefined) {
      this.#life.downstreamBytes += chunk.byteLength;
      this.#passDownstream(chunk);
      return;
    }
    this.#hasPassedOutput = false;
    const end = this.#decoder.fromNode(chunk, this.#passDownstream);
    // The answer to a heartbeat of ours is no traffic.
    if (this.#hasPassedOutput) this.#life.downstreamBytes += chunk.byteLength;
    this.#hold?.heard(chunk.byteLength);
    if (this.#pending !== undefined) this.#cut(this.#pending.end, this.#pending.message);
    else if (end !== undefined) this.#cut(end);
  }

  readonly #passDownstream = (bytes: Uint8Array): void => {
    this.#hasPassedOutput = true;
    if (!this.#downstream.writable) return;
    if (this.#isResultWritten || this.#ends?.hasResult !== true) {
      this.#downstream.write(bytes);
      return;
    }
    this.#isResultWritten = true;
    this.#downstream.write(bytes, (error) => {
      this.#isResultSent = !error;
    });
  };

  #toUpstream(chunk: Uint8Array): void {
    if (this.#life.isOver || this.#pending !== undefined) return;
    if (this.#decoder === undefined) {
      this.#life.upstreamBytes += chunk.byteLength;
      this.#passUpstream(chunk);
      return;
    }
    this.#hasPassedInput = false;
    const end = this.#decoder.fromClient(chunk, this.#passUpstream);
    if (end !== undefined) {
      this.#cut(end);
      return;
    }
    if (this.#hasPassedInput || this.#decoder.isSpdy) this.#life.upstreamBytes += chunk.byteLength;
    this.#answerClient();
  }

  readonly #passUpstream = (bytes: Uint8Array): void => {
    this.#hasPassedInput = true;
    if (this.#hold === undefined) this.#writeUpstream(bytes);
    else this.#hold.pass(this.#writeUpstream, bytes);
  };

  /** Behind the node's result nothing of the client's means anything, and its bytes could still do harm. */
  readonly #writeUpstream = (bytes: Uint8Array): void => {
    if (this.#upstream.writable && this.#ends?.hasResult !== true) this.#upstream.write(bytes);
  };

  /** A client that does not read gets one answer, to its newest PING, when it reads again. */
  #answerClient(): void {
    if (this.#life.isOver || this.#downstream.writableNeedDrain) return;
    const answer = this.#decoder?.answerClient?.();
    if (answer !== undefined && this.#downstream.writable) this.#downstream.write(answer);
  }

  #beat(nowMs: number): void {
    const { timeouts } = this.#life;
    const isHeldUp = this.#upstream.isPaused() || this.#downstream.writableNeedDrain;
    const isQuiet = this.#silence.isQuiet(nowMs, isHeldUp);
    if (isQuiet && this.#ends?.hasResult !== true && !this.#upstream.writableNeedDrain) {
      const answer = this.#decoder?.answerNode?.();
      if (answer !== undefined) this.#passUpstream(answer);
      const beatMs = this.#decoder?.isSpdy ? timeouts.spdyPingMs : timeouts.webSocketPingMs;
      if (nowMs - this.#lastNodeBeatMs >= beatMs) {
        const beat = this.#decoder?.beatNode?.();
        if (beat !== undefined) this.#passUpstream(beat);
        this.#lastNodeBeatMs = nowMs;
      }
    }
    if (nowMs - this.#lastClientBeatMs < timeouts.unsolicitedPongMs || this.#downstream.writableNeedDrain)
      return;
    const beat = this.#decoder?.beatClient?.();
    if (beat === undefined) return;
    this.#lastClientBeatMs = nowMs;
    if (this.#downstream.writable) this.#downstream.write(beat);
  }

  /** The node has said all it had to say, which ends a streaming session: the client gets all of it, then our FIN. */
  #upstreamEnded(): void {
    if (this.#life.isOver || this.#cutPending()) return;
    const end = this.#nodeEnd("the node ended the connection");
    if (this.#reportsFailures && this.#ends?.hasStatus === false && this.#decoder?.hasNodeLeft !== true) {
      this.#cutNow(end, "the node ended the session without a status");
    } else {
      this.#over(end, this.#ends?.hasAcknowledged === true && queuedBytesOf(this.#downstream) === 0);
      this.#lingerBoth();
    }
  }

  #upstreamBroke(how: string): void {
    if (this.#life.isOver || this.#cutPending()) return;
    const end = this.#ends?.nodeEnd(how) ?? endOf("upstream-lost", how);
    this.#cutNow(end, how);
  }

  #nodeEnd(how: string): SessionEnd {
    if (this.#ends !== undefined) return this.#ends.nodeEnd(how);
    return endOf(this.#downstreamEndedMs === undefined ? "completed" : "client-gone", how);
  }

  /** The client has no more input; the node may still have output. */
  #downstreamEnded(): void {
    if (this.#life.isOver) return;
    this.#downstreamEndedMs = this.#life.clock.now();
    this.#ends?.clientLeft("the client ended its connection");
    this.#hold?.flush();
    if (this.#upstream.writable) this.#upstream.end();
  }

  /**
   * A killed client's kernel sends FIN, too: without this, sessions with a silent node would add up.
   */
  #isAbandoned(nowMs: number): boolean {
    if (this.#downstreamEndedMs === undefined) return false;
    const silentMs = Math.min(nowMs - this.#downstreamEndedMs, this.#life.idleForMs(nowMs));
    return silentMs >= this.#life.timeouts.lingerIdleMs;
  }

  /** A client that has its result goes as it likes. */
  #clientBroke(how: string): void {
    if (this.#life.isOver) return;
    const isAllSent = this.#ends?.hasResult === true && queuedBytesOf(this.#downstream) === 0;
    const hasAll = this.#isResultSent || isAllSent;
    const end = hasAll ? this.#ends?.nodeEnd(how) : undefined;
    this.#over(end ?? endOf("client-gone", how), hasAll);
    finishAndLinger(this.#upstream, this.#life.timeouts, this.#life.clock);
    this.#downstream.destroy();
  }

  /** The session may not go on. `message`: for the client, which gets it behind the node's frame at hand. */
  #cut(end: SessionEnd, message: string = end.message): void {
    if (this.#life.isOver) return;
    if (this.#decoder?.stop?.() ?? true) this.#cutNow(end, message);
    else this.#pending ??= { end, message, untilMs: this.#life.clock.now() + BOUNDARY_WAIT_MS };
  }

  /** The end of the frame never comes. */
  #cutPending(): boolean {
    if (this.#pending === undefined) return false;
    this.#cutNow(this.#pending.end, this.#pending.message);
    return true;
  }

  #cutNow(end: SessionEnd, message: string): void {
    if (this.#life.isOver) return;
    const failureFrame = this.#decoder?.failureFrame?.(message, end);
    this.#over(end);
    if (failureFrame !== undefined) {
      if (this.#downstream.writable) this.#downstream.write(failureFrame);
      this.#lingerBoth();
    } else if (
      (this.#reportsFailures && this.#ends?.hasStatus) ||
      this.#ends?.hasResult ||
      this.#decoder?.hasNodeLeft
    ) {
      // The status is on its way already; breaking the connection now would take it back.
      this.#lingerBoth();
    } else {
      this.#upstream.destroy();
      abortSocket(this.#downstream);
    }
  }

  /** A failure can be reported in the session's own protocol. */
  get #reportsFailures(): boolean {
    return this.#decoder?.failureFrame !== undefined;
  }

  #lingerBoth(): void {
    finishAndLinger(this.#downstream, this.#life.timeouts, this.#life.clock);
    finishAndLinger(this.#upstream, this.#life.timeouts, this.#life.clock);
  }

  /** `hasAll`: the client took everything before it left. */
  #over(end: SessionEnd, hasAll = false): void {
    this.#hold?.drop();
    this.#life.end(end, hasAll ? undefined : this.#downstream, () => this.#isResultSent);
  }
}
