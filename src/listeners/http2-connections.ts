import {
  constants,
  createServer,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Limits } from "../config/sections/limits.ts";
import { MAX_SENT_HEADER_BLOCK_BYTES } from "../http/http2-headers.ts";
import { watchHttp2Session } from "../http/watch-http2-session.ts";
import { breakStream } from "../net/abort-socket.ts";
import { contain, containEvents } from "../observability/faults.ts";
import { settlesWithin } from "./settles-within.ts";

/** One stream's request as it came. */
export interface Http2Request {
  readonly stream: ServerHttp2Stream;
  readonly pseudo: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  /** The connection that it is a stream of. */
  readonly socket: Socket;
}

export interface Http2Handlers {
  /** Anything but CONNECT. */
  onRequest(request: Http2Request): void;
  /** Extended CONNECT (RFC 8441), and plain CONNECT, which has no `:protocol`. */
  onConnect(request: Http2Request): void;
}

export type Http2Limits = Pick<Limits, "maxHttp2Streams" | "maxRequestHeaderBytes" | "socketBufferBytes">;

/** A connection without an open stream is closed after this long, as kube-apiserver closes its own. */
export const HTTP2_IDLE_MS = 90_000;

export interface Http2Times {
  /** A connection without an open stream is closed after this long. Absent: HTTP2_IDLE_MS. */
  readonly idleMs?: number;
  /** A connection that is closing, and whose client takes nothing of what is queued for it for this long, is broken. */
  readonly takingMs: number;
}

/** Of one connection, over all its streams: room for a few that send at full speed while others stand still. */
const CONNECTION_WINDOW_BYTES = 1024 * 1024;

/** Frames that a peer may get wrong, or streams that it may have refused, before its connection ends. */
const MAX_INVALID_FRAMES = 10;
const MAX_REJECTED_STREAMS = 100;

/** Streams that a client may take back unanswered within a second of its first; nghttp2 alone lets a rapid reset go on for a minute. */
export const MAX_RESETS_A_SECOND = 500;

const MIB = 1024 * 1024;

/** A head's usual bound elsewhere: each stream may hold as much at once, and a few of a connection the longest that is allowed. */
const USUAL_HEAD_BYTES = 64 * 1024;
const LONGEST_HEADS_AT_ONCE = 16;

/**
 * What node:http2 may hold for one connection, in MiB: all of its streams with full buffers and usual heads, twice over. Its own 10 would
 * refuse streams that `maxHttp2Streams` allows.
 */
function sessionMemoryMib({
  maxHttp2Streams,
  socketBufferBytes,
  maxRequestHeaderBytes,
}: Http2Limits): number {
  const usualHeadBytes = Math.min(maxRequestHeaderBytes, USUAL_HEAD_BYTES);
  const headBytes = Math.max(
    2 * maxHttp2Streams * usualHeadBytes,
    LONGEST_HEADS_AT_ONCE * maxRequestHeaderBytes,
  );
  return Math.max(10, Math.ceil((2 * maxHttp2Streams * socketBufferBytes + headBytes) / MIB));
}

/**
 * The HTTP/2 connections of a listener, each with the bounds that stand against floods: streams at a time, header bytes and lines,
 * frames that are wrong (docs/limits.md). Rapid resets (CVE-2023-44487) and CONTINUATION floods (CVE-2024-27983) are stopped by nghttp2.
 */
export class Http2Connections {
  readonly #server: Http2Server;
  readonly #idleMs: number;
  readonly #takingMs: number;
  readonly #sessionMemoryMib: number;
  /** How many streams each has open. */
  readonly #sessions = new Map<ServerHttp2Session, number>();
  readonly #resets = new WeakMap<Http2Session, { sinceMs: number; count: number }>();
  #isDraining = false;

  constructor(
    limits: Http2Limits,
    handlers: Http2Handlers,
    { idleMs = HTTP2_IDLE_MS, takingMs }: Http2Times,
  ) {
    this.#idleMs = idleMs;
    this.#takingMs = takingMs;
    this.#sessionMemoryMib = sessionMemoryMib(limits);
    this.#server = createServer({
      settings: {
        enableConnectProtocol: true,
        maxConcurrentStreams: limits.maxHttp2Streams,
        maxHeaderListSize: limits.maxRequestHeaderBytes,
        // What one stream's peer may send unread: the same as on a connection of its own.
        initialWindowSize: limits.socketBufferBytes,
      },
      // Bounded by bytes here, each pair counting 32 and more: past these node:http2 resets, past `maxRequestHeaders` we answer.
      maxHeaderListPairs: limits.maxRequestHeaderBytes,
      maxSendHeaderBlockLength: MAX_SENT_HEADER_BLOCK_BYTES,
      maxSessionMemory: this.#sessionMemoryMib,
      maxSessionInvalidFrames: MAX_INVALID_FRAMES,
      maxSessionRejectedStreams: MAX_REJECTED_STREAMS,
    });
    // A peer that breaks off, or breaks the protocol: its session is over, and 'close' follows.
    this.#server.on("sessionError", () => {});
    const onStream = (
      stream: ServerHttp2Stream,
      pseudo: IncomingHttpHeaders,
      _flags: number,
      rawHeaders: readonly string[],
    ): void => {
      // Where its connection is ended for what the peer did, every open stream says so, answered or not: unheard, it would end the process.
      stream.on("error", ignore);
      const { session } = stream;
      if (session?.socket === undefined) return;
      const request = { stream, pseudo, rawHeaders, socket: session.socket as Socket };
      const abort = (): void => breakStream(stream);
      containEvents(stream, "listener", abort);
      destroyWhenReset(stream);
      stream.once("aborted", () => this.#countReset(session));
      contain(
        "listener",
        () => (pseudo[":method"] === "CONNECT" ? handlers.onConnect(request) : handlers.onRequest(request)),
        abort,
      );
      // What it came for is answered; the next is for another connection.
      if (this.#isDraining && !session.closed) session.close();
    };
    this.#server.on("stream", onStream);
  }

  /** A connection whose peer is known to speak HTTP/2. */
  accept(socket: Duplex): void {
    const opened = (session: ServerHttp2Session): void => this.#opened(session, socket);
    this.#server.once("session", opened).emit("connection", socket);
    this.#server.off("session", opened);
    // The client has closed: as Go's server and nginx take it. Node would keep the connection, and its streams their backends'.
    socket.once("end", () => socket.destroy());
  }

  /**
   * GOAWAY with the last stream that is served, so that clients send later ones elsewhere. Open streams continue. After a GOAWAY
   * without that name node:http2 would drop streams without a word.
   */
  drain(): void {
    this.#isDraining = true;
    for (const session of this.#sessions.keys()) session.close();
  }

  /** Resolves when the connections without an open stream have sent what they had to, or after `timeoutMs`. To be called after `drain`. */
  async flushed(timeoutMs: number): Promise<void> {
    const ending = [...this.#sessions].filter(([, openStreams]) => openStreams === 0);
    const ended = ending.map(([session]) => new Promise<void>((resolve) => session.once("close", resolve)));
    await settlesWithin(Promise.all(ended), timeoutMs);
  }

  #opened(session: ServerHttp2Session, socket: Duplex): void {
    this.#sessions.set(session, 0);
    session.once("close", () => this.#sessions.delete(session));
    watchHttp2Session(session, socket);
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    let timer: NodeJS.Timeout | undefined;
    const idle = (): void => {
      timer = setTimeout(() => session.close(), this.#idleMs).unref();
    };
    idle();
    // Closing waits for what is queued, and the end of its streams does not take it out of the queue of TLS or the system.
    const stuck = (): void => {
      if (session.closed && this.#openStreamsOf(session) === 0) socket.destroy();
      else session.setTimeout(this.#takingMs);
    };
    session.on("timeout", stuck);
    session.setTimeout(this.#takingMs);
    let unsentBytes = 0;
    session.on("stream", (stream: ServerHttp2Stream) => {
      clearTimeout(timer);
      this.#sessions.set(session, this.#openStreamsOf(session) + 1);
      stream.on("close", () => {
        const openStreams = this.#openStreamsOf(session) - 1;
        if (this.#sessions.has(session)) this.#sessions.set(session, openStreams);
        if (openStreams === 0 && !session.closed) idle();
        // node:http2 counts what a reset stream had still to send for ever, and refuses streams past maxSessionMemory.
        unsentBytes += stream.writableLength;
        if (unsentBytes > (this.#sessionMemoryMib * MIB) / 2 && !session.closed) session.close();
      });
    });
    session.once("close", () => clearTimeout(timer));
  }

  #countReset(session: Http2Session): void {
    if (session.destroyed) return;
    const nowMs = performance.now();
    let resets = this.#resets.get(session);
    if (resets === undefined || nowMs - resets.sinceMs > 1_000) resets = { sinceMs: nowMs, count: 0 };
    resets.count += 1;
    this.#resets.set(session, resets);
    if (resets.count <= MAX_RESETS_A_SECOND) return;
    // Outside of the stream's own event.
    setImmediate(() => session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM));
  }

  #openStreamsOf(session: ServerHttp2Session): number {
    return this.#sessions.get(session) ?? 0;
  }
}

/**
 * node:http2 takes a RST_STREAM with NO_ERROR for a complete answer and waits for writes that are never sent: stream and backend
 * connection would last as long as the client's connection.
 */
function destroyWhenReset(stream: ServerHttp2Stream): void {
  const destroyIfForgotten = (): void => {
    if (!stream.destroyed && isForgotten(stream)) stream.destroy();
  };
  // nghttp2 still knows the stream while it reports its end.
  const closing = (): void => {
    if (stream.closed) setImmediate(destroyIfForgotten);
  };
  stream.on("aborted", closing).on("end", closing);
}

function ignore(): void {}

/** nghttp2 forgets a stream that is closed, and node:http2 calls the state of one that it does not know idle. */
function isForgotten({ state }: ServerHttp2Stream): boolean {
  return (
    state.state === constants.NGHTTP2_STREAM_STATE_IDLE ||
    state.state === constants.NGHTTP2_STREAM_STATE_CLOSED
  );
}
