import type { Duplex } from "node:stream";
import { streamHeaders } from "@sluice/protocols/portforward";
import { defaultSpdyLimits } from "@sluice/protocols/spdy";
import { ForwardedStream, type ForwardLink } from "./forwarded-stream.ts";
import type { SessionTimes } from "./session-times.ts";
import { SessionError } from "./sessions/session-error.ts";
import { SpdyConnection, type SpdyConnectionEnd } from "./sessions/spdy-connection.ts";

/**
 * Data that one local side has not read. Past it the client stops reading the session, which all
 * streams share.
 */
const MAX_STREAM_BUFFER_BYTES = 1024 * 1024;
/**
 * A local side that reads nothing while other streams wait. Past it its stream ends with an error.
 */
const STREAM_STALL_TIMEOUT_MS = 30_000;
/** Limits the answers to a flood of PINGs that wait for a server that does not read. */
const MAX_QUEUED_BYTES = 16 * 1024 * 1024;
const LINGER_TIMES = { lingerIdleMs: 1_000, lingerMaxMs: 2_000 };

/** A port-forward session with one pod: any number of connections to any of its ports. */
export class PortForwardConnection {
  readonly transport: "websocket" | "spdy";
  /** Resolves with the reason once the session has ended; undefined after our own `close`. */
  readonly ended: Promise<SessionError | undefined>;
  readonly #socket: Duplex;
  readonly #spdy: SpdyConnection;
  readonly #times: SessionTimes;
  readonly #streams = new Set<ForwardedStream>();
  /** Streams with a full buffer, and since when. */
  readonly #full = new Map<ForwardedStream, number>();
  /**
   * Streams that the server has not accepted: since when, and how many chunks were sent before
   * them.
   */
  readonly #unaccepted = new Map<ForwardedStream, { sinceMs: number; readonly chunks: number }>();
  readonly #waiting: (() => void)[] = [];
  #resolveEnded: (error?: SessionError) => void = () => {};
  #nextRequestId = 0;
  #lastHeardMs: number;
  #hasUnansweredData = false;
  /** Data chunks: those sent, and those that the server has shown to have read. */
  #sentChunks = 0;
  #readChunks = 0;
  #isRetired = false;
  #isOver = false;

  constructor(socket: Duplex, head: Buffer, transport: "websocket" | "spdy", times: SessionTimes) {
    this.transport = transport;
    this.#socket = socket;
    this.#times = times;
    this.#lastHeardMs = times.clock.now();
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    this.#spdy = new SpdyConnection(
      socket,
      { onEnd: (end) => this.#connectionEnded(end) },
      {
        role: "client",
        limits: defaultSpdyLimits,
        lingerTimes: LINGER_TIMES,
        clock: times.clock,
        pingIntervalMs: times.forwardPingIntervalMs,
        maxQueuedBytes: MAX_QUEUED_BYTES,
      },
    );
    times.clock.add(this);
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("drain", () => this.#drained());
    socket.resume();
    if (head.byteLength > 0) this.#receive(head);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  /**
   * Unanswered data may have stopped the server's reading, so that it would accept no further
   * stream.
   */
  get isInDoubt(): boolean {
    return this.#sentChunks > this.#readChunks;
  }

  /** Opens no more streams, and closes after the last open one. */
  retire(): void {
    this.#isRetired = true;
    if (this.#streams.size === 0) this.close();
  }

  /**
   * Opens a connection to a port (1 to 65535). It fails with "stream-timeout" if the server does
   * not accept it in time. Throws SessionError "connection-lost" after the session's end.
   */
  openStream(port: number): ForwardedStream {
    if (this.#isOver) throw new SessionError("connection-lost", "lost connection to pod");
    const requestId = String(this.#nextRequestId++);
    const stream = new ForwardedStream(port, this.#link);
    this.#streams.add(stream);
    this.#unaccepted.set(stream, { sinceMs: this.#times.clock.now(), chunks: this.#sentChunks });
    const headers = (streamType: "error" | "data") => streamHeaders({ streamType, port, requestId });
    this.#socket.cork();
    const error = this.#spdy.openStream(headers("error"), stream.errorHandler);
    error.finish();
    const data = this.#spdy.openStream(headers("data"), stream.dataHandler);
    this.#socket.uncork();
    stream.attach(error, data);
    return stream;
  }

  /** Ends the session and all of its streams. */
  close(): void {
    if (this.#isOver) return;
    this.#over(undefined);
    this.#spdy.finish();
  }

  tick(nowMs: number): void {
    this.#endUnaccepted(nowMs);
    this.#endStalled(nowMs);
    this.#spdy.tick(nowMs);
    // Unanswered data may delay every answer, unless another stream waits for one.
    const holdsUpItself = this.#hasUnansweredData && this.#streams.size < 2;
    if (this.#socket.isPaused() || holdsUpItself) this.#lastHeardMs = nowMs;
    if (nowMs - this.#lastHeardMs < this.#times.deadlineMs) return;
    this.#spdy.abort();
    this.#over(new SessionError("heartbeat-timeout", "the server did not answer for too long: i/o timeout"));
  }

  readonly #link: ForwardLink = {
    accepted: (stream) => {
      this.#readChunks = Math.max(this.#readChunks, this.#unaccepted.get(stream)?.chunks ?? 0);
      this.#unaccepted.delete(stream);
    },
    answered: () => {
      this.#readChunks = this.#sentChunks;
    },
    abandoned: () => {
      this.#sentChunks += 1;
    },
    send: (data, chunk, taken) => {
      this.#hasUnansweredData = true;
      this.#sentChunks += 1;
      this.#socket.cork();
      data.write(chunk);
      this.#socket.uncork();
      if (this.#socket.writableNeedDrain && !this.#isOver) this.#waiting.push(taken);
      else taken();
    },
    bufferedChanged: (stream) => {
      if (stream.readableLength >= MAX_STREAM_BUFFER_BYTES) {
        if (!this.#full.has(stream)) this.#full.set(stream, this.#times.clock.now());
      } else if (!this.#full.delete(stream)) return;
      this.#regulate();
    },
    forget: (stream) => {
      this.#streams.delete(stream);
      this.#unaccepted.delete(stream);
      if (this.#full.delete(stream)) this.#regulate();
      if (this.#isRetired && this.#streams.size === 0) this.close();
    },
  };

  #receive(chunk: Buffer): void {
    this.#lastHeardMs = this.#times.clock.now();
    this.#hasUnansweredData = false;
    this.#spdy.receive(chunk);
  }

  #drained(): void {
    // The server reads our data, so it is alive even if it sends nothing.
    this.#lastHeardMs = this.#times.clock.now();
    for (const callback of this.#waiting.splice(0)) callback();
  }

  /** Kubernetes' SPDY has no flow control, so only the whole connection can pause. */
  #regulate(): void {
    if (this.#isOver) return;
    if (this.#full.size > 0) this.#socket.pause();
    else if (this.#socket.isPaused()) this.#socket.resume();
  }

  #endStalled(nowMs: number): void {
    if (this.#streams.size < 2) return;
    for (const [stream, sinceMs] of [...this.#full]) {
      if (nowMs - sinceMs < STREAM_STALL_TIMEOUT_MS) continue;
      stream.destroy(new SessionError("output-failed", "the local connection does not read"));
    }
  }

  #endUnaccepted(nowMs: number): void {
    for (const [stream, opened] of [...this.#unaccepted]) {
      // The server's acceptance cannot arrive while we do not read.
      if (this.#socket.isPaused()) opened.sinceMs = nowMs;
      else if (nowMs - opened.sinceMs >= this.#times.streamCreationMs) {
        this.#isRetired = true;
        stream.destroy(
          new SessionError("stream-timeout", "the server did not accept the connection in time"),
        );
      }
    }
  }

  #connectionEnded({ isProtocolError, reason }: SpdyConnectionEnd): void {
    const code = isProtocolError ? "protocol-error" : "connection-lost";
    this.#over(new SessionError(code, `lost connection to pod: ${reason}`));
    this.#spdy.finish();
  }

  #over(error: SessionError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#times.clock.delete(this);
    this.#drained();
    for (const stream of [...this.#streams]) stream.sessionEnded();
    this.#resolveEnded(error);
  }
}
