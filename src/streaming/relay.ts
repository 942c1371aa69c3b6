import type { Duplex } from "node:stream";
import { ProtocolError } from "../../protocols/protocol-error.ts";
import { abortSocket } from "./abort-socket.ts";
import { feed } from "./feed.ts";
import type { FirstWordWatch } from "./first-word.ts";
import type { Leg } from "./leg.ts";
import { finishAndLinger } from "./linger.ts";
import type { PortGuard } from "./port-guard.ts";
import { type SessionContext, type SessionEndCause, type StreamingSession, Traffic } from "./session.ts";
import { SessionLimits } from "./session-limits.ts";
import type { RelayGuard } from "./status-guard.ts";

/** Who reads along. */
export interface RelayGuards {
  /** Has the last word towards a client whose upstream said none. */
  readonly status?: RelayGuard | undefined;
  /** Lets no port through that policy forbids. */
  readonly ports?: PortGuard | undefined;
  /** Wants to know how the upstream begins. */
  readonly firstWord?: Pick<FirstWordWatch, "see"> | undefined;
}

/**
 * Carries bytes both ways untouched: pass-through, once both upgrades are done.
 *
 * A client that half-closes has no more input, and the node goes on; a node that ends has said all, and the client gets
 * all of it. The reference closes both sockets when either direction ends and so cuts the tail of the other. A side that breaks (reset, error) breaks the other as well: an end must never look better than it was.
 * Where a guard is given, it has the last word towards a client whose upstream said none.
 */
export class Relay implements StreamingSession {
  readonly #context: SessionContext;
  readonly #downstream: Duplex;
  readonly #upstream: Duplex;
  readonly traffic: Traffic;
  readonly #limits: SessionLimits;
  readonly #guard: RelayGuard | undefined;
  readonly #portGuard: PortGuard | undefined;
  #firstWord: RelayGuards["firstWord"];
  #downstreamEndedMs: number | undefined;
  #isOver = false;

  constructor(downstream: Leg, upstream: Leg, context: SessionContext, guards: RelayGuards = {}) {
    this.#context = context;
    this.#guard = guards.status;
    this.#portGuard = guards.ports;
    this.#firstWord = guards.firstWord;
    this.#downstream = downstream.socket;
    this.#upstream = upstream.socket;
    const startedMs = context.clock.now();
    this.traffic = new Traffic(startedMs);
    this.#limits = new SessionLimits(startedMs, context.timeouts);
    feed(
      this.#upstream,
      this.#downstream,
      (chunk) => this.#toDownstream(chunk),
      context.bandwidth?.direction(),
    );
    feed(
      this.#downstream,
      this.#upstream,
      (chunk) => this.#toUpstream(chunk),
      context.bandwidth?.direction(),
    );
    this.#upstream.on("end", () => this.#upstreamEnded());
    this.#downstream.on("end", () => this.#downstreamEnded());
    this.#upstream.on("error", (error: Error) => this.#broke("upstream-lost", error.message));
    this.#downstream.on("error", (error: Error) => this.#broke("client-gone", error.message));
    this.#upstream.on("close", () => this.#broke("upstream-lost", "the node's connection closed"));
    this.#downstream.on("close", () => this.#broke("client-gone", "the client's connection closed"));
    context.clock.add(this);
    if (upstream.head.byteLength > 0) this.#toDownstream(upstream.head);
    if (downstream.head.byteLength > 0) this.#toUpstream(downstream.head);
  }

  tick(nowMs: number): void {
    if (this.#isOver) return;
    if (this.#isAbandoned(nowMs)) {
      this.#broke("client-gone", "the client ended its connection, and the node says nothing more");
      return;
    }
    const due = this.#limits.check(nowMs, this.traffic);
    // A warning has no place among bytes of which nothing is known.
    if (due?.type === "end") this.end(due.cause, due.message);
  }

  end(cause: "idle" | "time-limit" | "shutdown", message: string): void {
    this.#broke(cause, message);
  }

  #toDownstream(chunk: Uint8Array): void {
    this.traffic.downstreamBytes += chunk.byteLength;
    if (this.#firstWord?.see(chunk) === true) this.#firstWord = undefined;
    if (this.#guard === undefined) {
      this.#passDownstream(chunk);
      return;
    }
    try {
      this.#guard.fromUpstream(chunk, this.#passDownstream);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#broke("protocol-error", `the node sent malformed SPDY: ${error.message}`);
    }
  }

  readonly #passDownstream = (bytes: Uint8Array): void => {
    if (this.#downstream.writable) this.#downstream.write(bytes);
  };

  #toUpstream(chunk: Uint8Array): void {
    if (this.#isOver && this.#portGuard !== undefined) return;
    const end = this.#portGuard?.inspect(chunk);
    if (end !== undefined) {
      this.#broke(end.cause, end.message);
      return;
    }
    this.traffic.upstreamBytes += chunk.byteLength;
    this.#guard?.fromDownstream(chunk);
    if (this.#upstream.writable) this.#upstream.write(chunk);
  }

  /** The node has said all it had to say, which ends a streaming session: the client gets all of it, then our FIN. */
  #upstreamEnded(): void {
    if (this.#isOver) return;
    if (this.#guard !== undefined && !this.#guard.hasStatus) {
      this.#broke("upstream-lost", "the node ended the session without a status");
    } else {
      this.#over("completed", "the node ended the connection");
      this.#lingerBoth();
    }
  }

  /** The client has no more input; the node may still have output. */
  #downstreamEnded(): void {
    if (this.#isOver) return;
    this.#downstreamEndedMs = this.#context.clock.now();
    if (this.#upstream.writable) this.#upstream.end();
  }

  /** A killed client's kernel sends FIN, too: nobody waits for a node that then is silent, or sessions of the dead add up. */
  #isAbandoned(nowMs: number): boolean {
    if (this.#downstreamEndedMs === undefined) return false;
    const silentMs = Math.min(nowMs - this.#downstreamEndedMs, this.traffic.idleForMs(nowMs));
    return silentMs >= this.#context.lingerTimes.lingerIdleMs;
  }

  #broke(cause: SessionEndCause, message: string): void {
    if (this.#isOver) return;
    this.#over(cause, message);
    const lastWord = cause === "client-gone" ? undefined : this.#guard?.lastWord(message);
    if (lastWord !== undefined) {
      this.#passDownstream(lastWord);
      this.#lingerBoth();
    } else if (cause === "client-gone") {
      finishAndLinger(this.#upstream, this.#context.lingerTimes, this.#context.clock);
      this.#downstream.destroy();
    } else if (this.#guard?.hasStatus) {
      // The status is on its way already; breaking the connection now would take it back.
      this.#lingerBoth();
    } else {
      this.#upstream.destroy();
      abortSocket(this.#downstream);
    }
  }

  #lingerBoth(): void {
    finishAndLinger(this.#downstream, this.#context.lingerTimes, this.#context.clock);
    finishAndLinger(this.#upstream, this.#context.lingerTimes, this.#context.clock);
  }

  #over(cause: SessionEndCause, message: string): void {
    this.#isOver = true;
    this.#context.clock.delete(this);
    const { downstreamBytes, upstreamBytes } = this.traffic;
    const code = cause === "completed" || cause === "client-gone" ? 200 : 500;
    this.#context.onOver({ cause, code, message, downstreamBytes, upstreamBytes });
  }
}
