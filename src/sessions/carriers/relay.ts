import type { Duplex } from "node:stream";
import { ProtocolError } from "../../../protocols/protocol-error.ts";
import { abortSocket } from "../../net/abort-socket.ts";
import { feed } from "../../net/feed.ts";
import { finishAndLinger, queuedBytesOf } from "../../net/linger.ts";
import type { UpgradedConnection } from "../../net/upgraded-connection.ts";
import type { SessionLifecycle } from "../lifecycle.ts";
import type { EndObserver } from "../observers/end-observer.ts";
import type { FirstMessageObserver } from "../observers/first-message-observer.ts";
import type { PortGuard } from "../observers/port-guard.ts";
import type { RelayGuard } from "../observers/status-guard.ts";
import type { StreamingSession } from "./session.ts";
import { type CauseOfOurs, endOf, faultOf, type SessionEnd } from "./session-end.ts";

/** What reads along. */
export interface RelayGuards {
  /** Knows from the frames how the session ends. Absent: the node's FIN completes it. */
  readonly ends?: EndObserver | undefined;
  /** Has the last word towards a client whose upstream said none. */
  readonly status?: RelayGuard | undefined;
  /** Lets no port through that policy forbids. */
  readonly ports?: PortGuard | undefined;
  /** Wants to know how the upstream begins. */
  readonly firstMessage?: Pick<FirstMessageObserver, "see"> | undefined;
}

/**
 * Carries bytes both ways untouched: pass-through, once both upgrades are done.
 *
 * A client that half-closes has no more input, and the node goes on; a node that ends has said all, and the client gets
 * all of it. The reference closes both sockets when either direction ends and so cuts the tail of the other. A side that breaks (reset, error) breaks the other as well: an end must never look better than it was.
 * Where a guard is given, it has the last word towards a client whose upstream said none.
 */
export class Relay implements StreamingSession {
  readonly #downstream: Duplex;
  readonly #upstream: Duplex;
  readonly #life: SessionLifecycle;
  readonly #ends: EndObserver | undefined;
  readonly #guard: RelayGuard | undefined;
  readonly #portGuard: PortGuard | undefined;
  #firstMessage: RelayGuards["firstMessage"];
  #downstreamEndedMs: number | undefined;

  constructor(
    downstream: UpgradedConnection,
    upstream: UpgradedConnection,
    life: SessionLifecycle,
    guards: RelayGuards = {},
  ) {
    this.#ends = guards.ends;
    this.#guard = guards.status;
    this.#portGuard = guards.ports;
    this.#firstMessage = guards.firstMessage;
    this.#downstream = downstream.socket;
    this.#upstream = upstream.socket;
    this.#life = life;
    feed(this.#upstream, this.#downstream, (chunk) => this.#toDownstream(chunk), life.bandwidth?.direction());
    feed(this.#downstream, this.#upstream, (chunk) => this.#toUpstream(chunk), life.bandwidth?.direction());
    this.#upstream.on("end", () => this.#upstreamEnded());
    this.#downstream.on("end", () => this.#downstreamEnded());
    this.#upstream.on("error", (error: Error) => this.#upstreamBroke(error.message));
    this.#downstream.on("error", (error: Error) => this.#clientBroke(error.message));
    this.#upstream.on("close", () => this.#upstreamBroke("the node's connection closed"));
    this.#downstream.on("close", () => this.#clientBroke("the client's connection closed"));
    if (upstream.head.byteLength > 0) this.#toDownstream(upstream.head);
    if (downstream.head.byteLength > 0) this.#toUpstream(downstream.head);
  }

  tick(nowMs: number): void {
    if (this.#isAbandoned(nowMs))
      this.#clientBroke("the client ended its connection, and the node says nothing more");
  }

  end(cause: CauseOfOurs, message: string): void {
    this.#cut(endOf(cause, message));
  }

  #toDownstream(chunk: Uint8Array): void {
    this.#life.downstreamBytes += chunk.byteLength;
    if (this.#firstMessage?.see(chunk) === true) this.#firstMessage = undefined;
    this.#ends?.fromUpstream(chunk);
    if (this.#guard === undefined) {
      this.#passDownstream(chunk);
      return;
    }
    try {
      this.#guard.passOn(chunk, this.#passDownstream);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#cut(faultOf("node", "protocol-error", `the node sent malformed SPDY: ${error.message}`));
    }
  }

  readonly #passDownstream = (bytes: Uint8Array): void => {
    if (this.#downstream.writable) this.#downstream.write(bytes);
  };

  #toUpstream(chunk: Uint8Array): void {
    if (this.#life.isOver && this.#portGuard !== undefined) return;
    const end = this.#portGuard?.inspect(chunk);
    if (end !== undefined) {
      this.#cut(end);
      return;
    }
    this.#life.upstreamBytes += chunk.byteLength;
    this.#ends?.fromDownstream(chunk);
    if (this.#upstream.writable) this.#upstream.write(chunk);
  }

  /** The node has said all it had to say, which ends a streaming session: the client gets all of it, then our FIN. */
  #upstreamEnded(): void {
    if (this.#life.isOver) return;
    const end = this.#nodeEnd("the node ended the connection");
    if (this.#guard !== undefined && !this.#guard.hasStatus) {
      this.#cut(end, "the node ended the session without a status");
    } else {
      this.#over(end);
      this.#lingerBoth();
    }
  }

  #upstreamBroke(how: string): void {
    if (this.#life.isOver) return;
    const end = this.#ends?.nodeEnd(how) ?? endOf("upstream-lost", how);
    this.#cut(end, how);
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
    if (this.#upstream.writable) this.#upstream.end();
  }

  /** A killed client's kernel sends FIN, too: nobody waits for a node that then is silent, or sessions of the dead add up. */
  #isAbandoned(nowMs: number): boolean {
    if (this.#downstreamEndedMs === undefined) return false;
    const silentMs = Math.min(nowMs - this.#downstreamEndedMs, this.#life.idleForMs(nowMs));
    return silentMs >= this.#life.timeouts.lingerIdleMs;
  }

  /** A client that has its result goes as it likes. */
  #clientBroke(how: string): void {
    if (this.#life.isOver) return;
    const hasAll = this.#ends?.hasResult === true && queuedBytesOf(this.#downstream) === 0;
    const end = hasAll ? this.#ends?.nodeEnd(how) : undefined;
    this.#over(end ?? endOf("client-gone", how), hasAll);
    finishAndLinger(this.#upstream, this.#life.timeouts, this.#life.clock);
    this.#downstream.destroy();
  }

  /** The node broke, or the session may not go on. `message`: for the client, where it can be told. */
  #cut(end: SessionEnd, message: string = end.message): void {
    if (this.#life.isOver) return;
    this.#over(end);
    const failureFrame = this.#guard?.failureFrame(message);
    if (failureFrame !== undefined) {
      this.#passDownstream(failureFrame);
      this.#lingerBoth();
    } else if (this.#guard?.hasStatus || this.#ends?.hasResult) {
      // The status is on its way already; breaking the connection now would take it back.
      this.#lingerBoth();
    } else {
      this.#upstream.destroy();
      abortSocket(this.#downstream);
    }
  }

  #lingerBoth(): void {
    finishAndLinger(this.#downstream, this.#life.timeouts, this.#life.clock);
    finishAndLinger(this.#upstream, this.#life.timeouts, this.#life.clock);
  }

  /** `hasAll`: the client took everything before it left. */
  #over(end: SessionEnd, hasAll = false): void {
    this.#life.end(end, hasAll ? undefined : this.#downstream, this.#guard !== undefined);
  }
}
