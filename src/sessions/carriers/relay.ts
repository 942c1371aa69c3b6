import type { Duplex } from "node:stream";
import { abortSocket, clientFailureOf } from "@sluice/client/internal/net/abort-socket";
import { finishAndLinger, queuedBytesOf } from "@sluice/client/internal/net/linger";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { NodeSilence } from "@sluice/client/internal/sessions/node-silence";
import { endOf, type SessionEnd } from "@sluice/client/internal/sessions/session-end";
import { feed } from "../../net/feed.ts";
import { ReadAhead } from "../../net/read-ahead.ts";
import type { PassThroughDecoder, RelayedSession } from "../decoders/pass-through-decoder.ts";
import type { SessionLifecycle } from "../lifecycle.ts";
import type { EndObserver } from "../observers/end-observer.ts";
import type { InputResult, StreamingSession } from "../session.ts";
import { InputHold } from "./input-hold.ts";
import { ReportHold } from "./report-hold.ts";
import { PassedWarnings } from "./terminal-warning.ts";

/**
 * How long an ending session waits for the rest of a node's frame. Past it the connection is broken
 * off: WebSocket clients see 1006.
 */
export const BOUNDARY_WAIT_MS = 1_000;

/**
 * Passes bytes through, except heartbeats. A client's FIN ends only its input. The node's FIN ends the
 * session after all its output; kube-apiserver cuts the tail there.
 */
export class Relay implements StreamingSession {
  readonly #downstream: Duplex;
  readonly #upstream: Duplex;
  readonly #life: SessionLifecycle;
  readonly #ends: EndObserver | undefined;
  readonly #decoder: PassThroughDecoder | undefined;
  readonly #silence: NodeSilence;
  readonly #hold: InputHold | undefined;
  readonly #report: ReportHold;
  readonly #warnings: PassedWarnings;
  #downstreamEndedMs: number | undefined;
  #lastNodeBeatMs: number;
  #lastClientBeatMs: number;
  /** An end that waits until the present frame is complete. */
  #pending: { readonly end: SessionEnd; readonly message: string; readonly untilMs: number } | undefined;
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
    this.#report = new ReportHold(life, this.#downstream, ends, () => this.#answerClient());
    this.#warnings = new PassedWarnings(isTerminal ? decoder : undefined, this.#downstream);
    if (this.#report.isEnabled) decoder?.keepReport?.(this.#report);
    const ahead = closesBehindResult ? new ReadAhead(life.info?.user ?? "") : undefined;
    feed(this.#upstream, this.#downstream, (chunk) => this.#toDownstream(chunk), life.pace("node"), ahead);
    const fromClient = (chunk: Uint8Array): void => this.#toUpstream(chunk);
    const input = feed(this.#downstream, this.#upstream, fromClient, life.pace("client"));
    if (ahead !== undefined)
      this.#hold = new InputHold(ahead, input, isTerminal, () => ends?.hasResult === true);
    this.#upstream.on("end", () => this.#upstreamEnded());
    this.#downstream.on("end", () => this.#downstreamEnded());
    this.#downstream.on("drain", () => this.#answerClient());
    this.#upstream.on("error", (error: Error) => this.#upstreamBroke(error.message));
    this.#downstream.on("error", (error: Error) => this.#clientBroke(clientFailureOf(error)));
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

  warn(message: string): void {
    this.#warnings.add(message);
  }

  get readsInput(): boolean {
    if (this.#life.isOver || this.#pending !== undefined || this.#ends?.hasResult === true) return false;
    return this.#upstream.writable && this.#decoder?.readsInput === true;
  }

  input(bytes: Uint8Array, by: string): InputResult {
    if (!this.readsInput) return "no-input";
    const typed = this.#hold?.takes(bytes, this.#upstream) ? this.#decoder?.input?.(bytes, by) : undefined;
    if (typed === undefined) return "later";
    if (!(typed instanceof Uint8Array)) this.end(typed);
    if (!(typed instanceof Uint8Array)) return "no-input";
    this.#passUpstream(typed);
    this.#life.upstreamBytes += typed.byteLength;
    return "taken";
  }

  #toDownstream(chunk: Uint8Array): void {
    this.#silence.heard();
    if (this.#decoder === undefined) {
      this.#life.downstreamBytes += chunk.byteLength;
      this.#report.pass(chunk);
      return;
    }
    this.#hasPassedOutput = false;
    this.#report.chunkBegins();
    const end = this.#decoder.fromNode(chunk, this.#passDownstream);
    // An answer to the gateway's own heartbeat is not traffic.
    if (this.#hasPassedOutput) this.#life.downstreamBytes += chunk.byteLength;
    this.#hold?.heard(chunk.byteLength);
    if (this.#pending !== undefined) this.end(this.#pending.end, this.#pending.message);
    else if (end !== undefined) this.end(end);
    this.#report.chunkEnds();
    this.#warnings.write();
  }

  readonly #passDownstream = (bytes: Uint8Array): void => {
    this.#hasPassedOutput = true;
    this.#report.pass(bytes);
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
      this.end(end);
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

  /**
   * After the node's result, client bytes are useless and could cause a reset that discards queued
   * output.
   */
  readonly #writeUpstream = (bytes: Uint8Array): void => {
    if (this.#upstream.writable && this.#ends?.hasResult !== true) this.#upstream.write(bytes);
  };

  /** A client that does not read gets one answer, to its newest PING, once it reads again. */
  #answerClient(): void {
    if (this.#life.isOver || this.#downstream.writableNeedDrain || this.#report.isWaiting) return;
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
    if (nowMs - this.#lastClientBeatMs < timeouts.unsolicitedPongMs) return;
    if (this.#downstream.writableNeedDrain || this.#report.isWaiting) return;
    const beat = this.#decoder?.beatClient?.();
    if (beat === undefined) return;
    this.#lastClientBeatMs = nowMs;
    if (this.#downstream.writable) this.#downstream.write(beat);
  }

  /** The node's FIN ends a streaming session: the client gets all of the output, then a FIN. */
  #upstreamEnded(): void {
    if (this.#life.isOver || this.#cutPending() || this.#report.delays(() => this.#upstreamEnded())) return;
    const how = "the node ended the connection";
    const end =
      this.#ends?.nodeEnd(how) ??
      endOf(this.#downstreamEndedMs === undefined ? "completed" : "client-gone", how);
    if (this.#reportsFailures && this.#ends?.hasStatus === false && this.#decoder?.hasNodeLeft !== true) {
      this.#cutNow(end, "the node ended the session without a status");
    } else {
      this.#over(end, this.#ends?.hasAcknowledged === true && queuedBytesOf(this.#downstream) === 0);
      this.#lingerBoth();
    }
  }

  #upstreamBroke(how: string): void {
    if (this.#life.isOver || this.#cutPending() || this.#report.delays(() => this.#upstreamBroke(how)))
      return;
    const end = this.#ends?.nodeEnd(how) ?? endOf("upstream-lost", how);
    this.#cutNow(end, how);
  }

  /** The client has no more input, but the node may still send output. */
  #downstreamEnded(): void {
    if (this.#life.isOver) return;
    this.#downstreamEndedMs = this.#life.clock.now();
    this.#ends?.clientLeft("the client ended its connection");
    this.#hold?.flush();
    if (this.#upstream.writable) this.#upstream.end();
  }

  /**
   * A killed client's kernel sends FIN, too. Without this check, its sessions with a silent node would
   * pile up.
   */
  #isAbandoned(nowMs: number): boolean {
    if (this.#downstreamEndedMs === undefined) return false;
    const silentMs = Math.min(nowMs - this.#downstreamEndedMs, this.#life.idleForMs(nowMs));
    return silentMs >= this.#life.timeouts.lingerIdleMs;
  }

  /** A client that has its result may close in any way. What it sent before is still delivered. */
  #clientBroke(how: string): void {
    if (this.#life.isOver) return;
    this.#hold?.flush();
    const hasAll = this.#report.isResultTaken;
    const end = hasAll ? this.#ends?.nodeEnd(how) : undefined;
    this.#over(end ?? endOf("client-gone", how), hasAll);
    finishAndLinger(this.#upstream, this.#life.timeouts, this.#life.clock, "node");
    this.#downstream.destroy();
  }

  /** Ends the session early. `message` goes to the client after the node's present frame. */
  end(end: SessionEnd, message: string = end.message): void {
    if (this.#life.isOver) return;
    if (this.#decoder?.stop?.() ?? true) this.#cutNow(end, message);
    else if (this.#pending === undefined) {
      const untilMs = this.#life.clock.now() + BOUNDARY_WAIT_MS;
      this.#pending = { end, message, untilMs };
      setTimeout(() => this.#life.tick(untilMs), BOUNDARY_WAIT_MS).unref();
    }
  }

  /** The rest of the frame will not come: ends the session without it. */
  #cutPending(): boolean {
    if (this.#pending === undefined) return false;
    this.#cutNow(this.#pending.end, this.#pending.message);
    return true;
  }

  #cutNow(end: SessionEnd, message: string): void {
    if (this.#life.isOver) return;
    const failureFrame = this.#decoder?.failureFrame?.(message, end);
    const isReportKept = this.#report.isWithheld;
    this.#over(end);
    if (failureFrame !== undefined) {
      if (this.#downstream.writable) this.#downstream.write(failureFrame);
      this.#lingerBoth();
    } else if (!isReportKept && this.#hasReport) {
      // The status is already on its way. Breaking the connection now would discard it.
      this.#lingerBoth();
    } else {
      this.#upstream.destroy();
      abortSocket(this.#downstream);
    }
  }

  /** True if the session's protocol can report a failure to the client. */
  get #reportsFailures(): boolean {
    return this.#decoder?.failureFrame !== undefined;
  }

  get #hasReport(): boolean {
    if (this.#reportsFailures && this.#ends?.hasStatus) return true;
    return this.#ends?.hasResult === true || this.#decoder?.hasNodeLeft === true;
  }

  #lingerBoth(): void {
    finishAndLinger(this.#downstream, this.#life.timeouts, this.#life.clock);
    finishAndLinger(this.#upstream, this.#life.timeouts, this.#life.clock, "node");
  }

  /** `hasAll`: the client had taken everything before it left. */
  #over(end: SessionEnd, hasAll = false): void {
    this.#hold?.drop();
    this.#report.drop();
    this.#life.end(end, hasAll ? undefined : this.#downstream, () => this.#report.isResultSent);
  }
}
