import type { Duplex } from "node:stream";
import { ProtocolError } from "../../../protocols/protocol-error.ts";
import {
  RST,
  type SpdyHeaders,
  type SpdyLimits,
  SpdySession,
  type SpdyStream,
  type SpdyStreamHandler,
} from "../../../protocols/spdy/index.ts";
import { finishAndLinger, type LingerTimes } from "../../net/linger.ts";
import type { SessionClock } from "../../net/session-clock.ts";
import { NodeSilence } from "./node-silence.ts";

/** How a SPDY connection ended: `isClean` when the peer said GOAWAY or closed, otherwise it broke. */
export interface SpdyConnectionEnd {
  readonly isClean: boolean;
  readonly isProtocolError: boolean;
  readonly reason: string;
}

export interface SpdyConnectionOptions {
  readonly role: "client" | "server";
  readonly limits: SpdyLimits;
  readonly lingerTimes: LingerTimes;
  readonly clock: SessionClock;
  /** PING the peer this often, in milliseconds; 0 never. */
  readonly pingIntervalMs: number;
  /** Bytes that may wait for a peer that sends but does not read, before the connection is given up. */
  readonly maxQueuedBytes: number;
}

export interface SpdyConnectionHandler {
  /** The peer opened a stream; see SpdySessionHandler.onStream. Absent: every stream is refused. */
  onStream?(stream: SpdyStream): SpdyStreamHandler | number;
  /** Nothing more arrives, once. Every open stream has been told before. Never called after our own `finish`. */
  onEnd(end: SpdyConnectionEnd): void;
}

/** One SPDY/3.1 session over a socket whose upgrade is done: joins the pure session to the socket and the clock. */
export class SpdyConnection {
  readonly #socket: Duplex;
  readonly #handler: SpdyConnectionHandler;
  readonly #options: SpdyConnectionOptions;
  readonly #session: SpdySession;
  readonly #silence: NodeSilence;
  #lastPingMs: number;
  #isReceiving = false;
  #isFinishing = false;
  #isSayingGoAway = false;
  #hasSentGoAway = false;
  #isOver = false;

  constructor(socket: Duplex, handler: SpdyConnectionHandler, options: SpdyConnectionOptions) {
    this.#socket = socket;
    this.#handler = handler;
    this.#options = options;
    this.#lastPingMs = options.clock.now();
    this.#silence = new NodeSilence(this.#lastPingMs);
    this.#session = new SpdySession(
      options.role,
      {
        send: (bytes) => this.#send(bytes),
        onStream: (stream) => handler.onStream?.(stream) ?? RST.REFUSED_STREAM,
      },
      options.limits,
    );
    socket.on("end", () => this.#connectionEnded(true, "the connection ended"));
    socket.on("error", (error: Error) => this.#connectionEnded(false, error.message));
    socket.on("close", () => this.#connectionEnded(false, "the connection closed"));
  }

  get socket(): Duplex {
    return this.#socket;
  }

  /** Our GOAWAY, and all before it, was handed to the system. */
  get hasSentGoAway(): boolean {
    return this.#hasSentGoAway;
  }

  /** Decodes a chunk read from the socket. A protocol error ends the connection: the peer cannot be understood any more. */
  receive(chunk: Uint8Array): void {
    if (this.#isOver) return;
    this.#silence.heard();
    this.#isReceiving = true;
    try {
      this.#session.receive(chunk);
      if (this.#session.isOver) this.#end({ isClean: true, isProtocolError: false, reason: "GOAWAY" });
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#end({ isClean: false, isProtocolError: true, reason: error.message });
      this.#socket.destroy();
    } finally {
      this.#isReceiving = false;
    }
    if (this.#isFinishing && !this.#isOver) this.finish();
  }

  openStream(
    headers: SpdyHeaders | readonly (readonly [string, string])[],
    handler: SpdyStreamHandler,
  ): SpdyStream {
    return this.#session.openStream(headers, handler);
  }

  /** Heartbeat, to be called about once a second: to a node only when it has been silent while it was read. */
  tick(nowMs: number): void {
    const { pingIntervalMs, role } = this.#options;
    const isQuiet = this.#silence.isQuiet(nowMs, this.#socket.isPaused());
    if (this.#isOver || pingIntervalMs === 0 || nowMs - this.#lastPingMs < pingIntervalMs) return;
    if (this.#socket.writableNeedDrain || this.#socket.isPaused() || (role === "client" && !isQuiet)) return;
    this.#lastPingMs = nowMs;
    this.#session.ping();
  }

  /**
   * Sends GOAWAY behind everything else, and lets the peer read all of it. Within a chunk it waits for
   * the rest: the server's own GOAWAY may be in it, and a write to its closed socket brings a RST.
   */
  finish(): void {
    // A handler that is notified of the end may finish the connection at once.
    if (this.#isReceiving && !this.#isOver) {
      this.#isFinishing = true;
      return;
    }
    if (!this.#isOver && this.#socket.writable && !this.#session.isOver) {
      this.#isSayingGoAway = true;
      this.#session.goAway();
    }
    this.leave();
  }

  /**
   * The same without GOAWAY: the session has no client any more. containerd 2 ends the command of a
   * connection that just ends, and lets it run for ever behind a GOAWAY.
   */
  leave(): void {
    this.#isOver = true;
    finishAndLinger(this.#socket, this.#options.lingerTimes, this.#options.clock);
  }

  abort(): void {
    this.#isOver = true;
    this.#socket.destroy();
  }

  #send(bytes: Uint8Array): void {
    if (!this.#socket.writable) return;
    if (this.#isSayingGoAway) this.#socket.write(bytes, this.#saidGoAway);
    else this.#socket.write(bytes);
    // Payload stops at the high-water mark (feed.ts); only answers to a flood of PINGs can pass this bound.
    if (this.#socket.writableLength > this.#options.maxQueuedBytes) {
      this.#socket.destroy(new Error("the peer sends but does not read"));
    }
  }

  readonly #saidGoAway = (error?: Error | null): void => {
    this.#hasSentGoAway = !error;
  };

  #connectionEnded(isClean: boolean, reason: string): void {
    if (this.#isOver) return;
    this.#session.receiveEnd();
    this.#end({ isClean, isProtocolError: false, reason });
  }

  #end(end: SpdyConnectionEnd): void {
    if (this.#isOver || this.#isFinishing) return;
    this.#isOver = true;
    this.#handler.onEnd(end);
  }
}
