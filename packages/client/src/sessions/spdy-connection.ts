// packages/client/sessions: a connection's SPDY session or WebSocket; the client's side of
// resumption

import type { Duplex } from "node:stream";
import { ProtocolError } from "@sluice/protocols";
import {
  RST,
  type SpdyHeaders,
  type SpdyLimits,
  SpdySession,
  type SpdyStream,
  type SpdyStreamHandler,
} from "@sluice/protocols/spdy";
import { finishAndLinger, type LingerTimes } from "../net/linger.ts";
import type { SessionClock } from "../net/session-clock.ts";
import { NodeSilence } from "./node-silence.ts";

/** How a SPDY connection ended. `isClean`: the peer sent GOAWAY or closed; otherwise the connection broke. */
export interface SpdyConnectionEnd {
  readonly isClean: boolean;
  readonly isProtocolError: boolean;
  readonly reason: string;
}

interface SpdyConnectionOptions {
  readonly role: "client" | "server";
  readonly limits: SpdyLimits;
  readonly lingerTimes: LingerTimes;
  readonly clock: SessionClock;
  /** Interval of PINGs to the peer, in milliseconds; 0: none. */
  readonly pingIntervalMs: number;
  /** Bytes that may wait for a peer that sends but does not read. Beyond this the connection is closed. */
  readonly maxQueuedBytes: number;
}

interface SpdyConnectionHandler {
  /** The peer opened a stream (see SpdySessionHandler.onStream). Absent: every stream is refused. */
  onStream?(stream: SpdyStream): SpdyStreamHandler | number;
  /**
   * Called once, when nothing more arrives and after every open stream's own end. Never called after
   * `finish`.
   */
  onEnd(end: SpdyConnectionEnd): void;
}

/** One SPDY/3.1 session over an upgraded socket. Connects the pure session to the socket and the clock. */
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

  /** True once the kernel has taken our GOAWAY and everything before it. */
  get hasSentGoAway(): boolean {
    return this.#hasSentGoAway;
  }

  /**
   * Decodes a chunk from the socket. A protocol error ends the connection, since later bytes cannot be
   * decoded.
   */
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

  /**
   * Sends heartbeats; call about once a second. A node gets them only after it has sent nothing for a
   * while, although it was being read.
   */
  tick(nowMs: number): void {
    const { pingIntervalMs, role } = this.#options;
    const isQuiet = this.#silence.isQuiet(nowMs, this.#socket.isPaused());
    if (this.#isOver || pingIntervalMs === 0 || nowMs - this.#lastPingMs < pingIntervalMs) return;
    if (this.#socket.writableNeedDrain || this.#socket.isPaused() || (role === "client" && !isQuiet)) return;
    this.#lastPingMs = nowMs;
    this.#session.ping();
  }

  /**
   * Sends GOAWAY last, and lets the peer read everything. Within a chunk it waits for the rest of that
   * chunk: the server's own GOAWAY may be in it, and writing to its closed socket causes a RST.
   */
  finish(): void {
    // A handler may call `finish` from its end notification.
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
   * Ends without GOAWAY, because the client has left. containerd 2 stops the command when its connection
   * just ends, but lets it run forever after a GOAWAY.
   */
  leave(): void {
    this.#isOver = true;
    const { lingerTimes, clock, role } = this.#options;
    finishAndLinger(this.#socket, lingerTimes, clock, role === "client" ? "node" : "client");
  }

  abort(): void {
    this.#isOver = true;
    this.#socket.destroy();
  }

  #send(bytes: Uint8Array): void {
    if (!this.#socket.writable) return;
    if (this.#isSayingGoAway) this.#socket.write(bytes, this.#saidGoAway);
    else this.#socket.write(bytes);
    // Payload stops at the high-water mark (feed.ts), so only answers to a flood of PINGs can exceed this
    // limit.
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
