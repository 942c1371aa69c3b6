import type { Duplex } from "node:stream";
import { feed } from "./feed.ts";
import { finishAndLinger } from "./linger.ts";
import { type SessionContext, type SessionEndCause, type StreamingSession, Traffic } from "./session.ts";
import type { Leg } from "./translator.ts";

/**
 * Carries bytes both ways untouched: pass-through, once both upgrades are done.
 *
 * Half-close is kept: a side that ends is ended on the other side after its last byte, and the opposite direction
 * goes on until it ends too. The reference closes both sockets when either direction ends and so cuts the tail of
 * the other. A side that breaks (reset, error) breaks the other as well: an end must never look better than it was.
 */
export class Relay implements StreamingSession {
  readonly #context: SessionContext;
  readonly #downstream: Duplex;
  readonly #upstream: Duplex;
  readonly #traffic: Traffic;
  #hasUpstreamEnded = false;
  #isOver = false;

  constructor(downstream: Leg, upstream: Leg, context: SessionContext) {
    this.#context = context;
    this.#downstream = downstream.socket;
    this.#upstream = upstream.socket;
    this.#traffic = new Traffic(context.clock.now());
    feed(this.#upstream, this.#downstream, (chunk) => this.#toDownstream(chunk));
    feed(this.#downstream, this.#upstream, (chunk) => this.#toUpstream(chunk));
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

  get downstreamBytes(): number {
    return this.#traffic.downstreamBytes;
  }

  get upstreamBytes(): number {
    return this.#traffic.upstreamBytes;
  }

  tick(nowMs: number): void {
    if (this.#isOver) return;
    if (this.#traffic.isIdle(nowMs, this.#context.timeouts.idleMs)) {
      this.end("idle", "the session was idle for too long");
    }
  }

  end(cause: "idle" | "shutdown", message: string): void {
    this.#broke(cause, message);
  }

  #toDownstream(chunk: Uint8Array): void {
    this.#traffic.downstreamBytes += chunk.byteLength;
    if (this.#downstream.writable) this.#downstream.write(chunk);
  }

  #toUpstream(chunk: Uint8Array): void {
    this.#traffic.upstreamBytes += chunk.byteLength;
    if (this.#upstream.writable) this.#upstream.write(chunk);
  }

  /** The node has said all it had to say, which ends a streaming session: the client gets all of it, then our FIN. */
  #upstreamEnded(): void {
    if (this.#isOver) return;
    this.#hasUpstreamEnded = true;
    this.#over("completed", "the node ended the connection");
    finishAndLinger(this.#downstream, this.#context.lingerTimes, this.#context.clock);
    finishAndLinger(this.#upstream, this.#context.lingerTimes, this.#context.clock);
  }

  /** The client has no more input; the node may still have output. */
  #downstreamEnded(): void {
    if (!this.#isOver && this.#upstream.writable) this.#upstream.end();
  }

  #broke(cause: SessionEndCause, message: string): void {
    if (this.#isOver) return;
    this.#over(cause, message);
    if (cause === "client-gone")
      finishAndLinger(this.#upstream, this.#context.lingerTimes, this.#context.clock);
    else this.#upstream.destroy();
    this.#downstream.destroy();
  }

  #over(cause: SessionEndCause, message: string): void {
    this.#isOver = true;
    this.#context.clock.delete(this);
    const { downstreamBytes, upstreamBytes } = this.#traffic;
    const code = this.#hasUpstreamEnded || cause === "client-gone" ? 200 : 500;
    this.#context.onOver({ cause, code, message, downstreamBytes, upstreamBytes });
  }
}
