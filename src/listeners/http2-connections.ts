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
import { breakStream, forgetTimer } from "@sluice/client/internal/net/abort-socket";
import { contain, containEvents } from "@sluice/client/internal/observability/faults";
import type { Limits } from "../config/sections/limits.ts";
import { KEEPS_OUTER_SPACE, MAX_SENT_HEADER_BLOCK_BYTES } from "../http/http2-headers.ts";
import { isClosing, watchHttp2Session, watchHttp2Stream } from "../http/watch-http2-session.ts";
import { InFlight } from "./plain-requests.ts";
import { type Lane, RequestTurns } from "./request-turns.ts";
import { SmallParts } from "./small-parts.ts";
import { UnfinishedHeads } from "./unfinished-heads.ts";
import { settlesWithin } from "./unused-connections.ts";

/** One stream's raw request. */
export interface Http2Request {
  readonly stream: ServerHttp2Stream;
  readonly pseudo: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  /** The stream's connection. */
  readonly socket: Socket;
}

export interface Http2Handlers {
  /** Every method except CONNECT. */
  onRequest(request: Http2Request): void;
  /** Extended CONNECT (RFC 8441); also plain CONNECT, which has no `:protocol`. */
  onConnect(request: Http2Request): void;
}

/** A stream among its connection's open ones. */
interface OpenStream {
  readonly stream: ServerHttp2Stream;
  inFlightIndex: number;
}

type Http2Limits = Pick<
  Limits,
  "maxHttp2Streams" | "maxRequestHeaderBytes" | "maxRequestHeaders" | "socketBufferBytes"
>;

/**
 * How long an HTTP/2 connection may have no stream, as in kube-apiserver. Past it the server sends
 * GOAWAY and closes the connection.
 */
const HTTP2_IDLE_MS = 90_000;
/** How long a closing HTTP/2 connection may have no stream. Past it the connection is destroyed. */
const LAST_CLOSE_MS = 5_000;

interface Http2Options {
  /** How long a connection may have no open stream before it is closed. Absent: HTTP2_IDLE_MS. */
  readonly idleMs?: number;
  /** How long a closing connection's client may read none of the queued bytes before it is destroyed. */
  readonly takingMs: number;
  /** How long the preface and a request's head may take. */
  readonly headMs: number;
  /** Shared with the listener's other requests. Absent: these connections have turns of their own. */
  readonly turns?: RequestTurns;
}

/**
 * Unread bytes of an HTTP/2 connection: room for a few streams at full speed while others stall.
 * Past it the client may send no more.
 */
const CONNECTION_WINDOW_BYTES = 1024 * 1024;

/** Invalid frames of one HTTP/2 connection. Past it the connection is closed. */
const MAX_INVALID_FRAMES = 10;
/** Streams that an HTTP/2 client opens beyond limits.maxHttp2Streams. Past it the connection is closed. */
const MAX_REJECTED_STREAMS = 100;

/**
 * Streams per second that a client resets before their answers; nghttp2's own limit would allow a
 * minute of rapid resets. Past it: ENHANCE_YOUR_CALM.
 */
const MAX_RESETS_A_SECOND = 500;

/**
 * HTTP/2 header lines of a head beyond limits.maxRequestHeaders, which browsers need: they send each
 * cookie on a line of its own. Past it: ENHANCE_YOUR_CALM for the stream.
 */
const SPARE_HEADER_PAIRS = 1_000;

const MIB = 1024 * 1024;

/**
 * A usual limit for heads. Every stream may buffer this much at once, and a few streams of a
 * connection the longest allowed head.
 */
const USUAL_HEAD_BYTES = 64 * 1024;
const LONGEST_HEADS_AT_ONCE = 16;

/**
 * node:http2's memory limit for one connection, in MiB: twice its streams with full buffers and usual
 * heads. The default of 10 would refuse streams that `maxHttp2Streams` allows.
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
 * A listener's HTTP/2 connections, each with limits against floods: streams, header bytes and lines,
 * invalid frames (docs/limits.md). nghttp2 stops rapid resets (CVE-2023-44487) and CONTINUATION floods
 * (CVE-2024-27983).
 */
export class Http2Connections {
  readonly #server: Http2Server;
  readonly #idleMs: number;
  readonly #takingMs: number;
  readonly #sessionMemoryMib: number;
  readonly #heads: UnfinishedHeads;
  readonly #parts: SmallParts;
  /** The open streams of each connection. */
  readonly #sessions = new Map<ServerHttp2Session, InFlight<OpenStream>>();
  readonly #resets = new WeakMap<Http2Session, { sinceMs: number; count: number }>();
  readonly #lanes = new WeakMap<Http2Session, Lane>();
  readonly #turns: RequestTurns;
  #isDraining = false;

  constructor(
    limits: Http2Limits,
    handlers: Http2Handlers,
    { idleMs = HTTP2_IDLE_MS, takingMs, headMs, turns = new RequestTurns() }: Http2Options,
  ) {
    this.#turns = turns;
    this.#idleMs = idleMs;
    this.#takingMs = takingMs;
    this.#heads = new UnfinishedHeads(headMs);
    this.#parts = new SmallParts(limits.socketBufferBytes);
    this.#sessionMemoryMib = sessionMemoryMib(limits);
    this.#server = createServer({
      settings: {
        enableConnectProtocol: true,
        maxConcurrentStreams: limits.maxHttp2Streams,
        maxHeaderListSize: limits.maxRequestHeaderBytes,
        // Unread bytes that one stream's client may send, as on an HTTP/1.1 connection.
        initialWindowSize: limits.socketBufferBytes,
      },
      // A line of one byte, which repeats an earlier one, costs as much as a long one. Past it
      // node:http2 resets the stream; past `maxRequestHeaders` we answer.
      maxHeaderListPairs: limits.maxRequestHeaders + SPARE_HEADER_PAIRS,
      maxSendHeaderBlockLength: MAX_SENT_HEADER_BLOCK_BYTES,
      maxSessionMemory: this.#sessionMemoryMib,
      maxSessionInvalidFrames: MAX_INVALID_FRAMES,
      maxSessionRejectedStreams: MAX_REJECTED_STREAMS,
      ...KEEPS_OUTER_SPACE,
    });
    // The peer broke the connection or the protocol: the session is over, and 'close' follows.
    this.#server.on("sessionError", () => {});
    const onStream = (
      stream: ServerHttp2Stream,
      pseudo: IncomingHttpHeaders,
      _flags: number,
      rawHeaders: readonly string[],
    ): void => {
      // When the peer's fault ends a connection, every open stream emits 'error', answered or not. Without a
      // listener it would end the process.
      stream.on("error", ignore);
      const { session } = stream;
      // The GOAWAY that is about to be sent refuses it.
      if (session?.socket === undefined || isClosing(session)) return;
      const request = { stream, pseudo, rawHeaders, socket: session.socket as Socket };
      const lane = this.#laneOf(session);
      const abort = (): void => breakStream(stream);
      containEvents(stream, "listener", abort);
      watchHttp2Stream(stream, () => this.#countReset(session));
      this.#turns.take(lane, () => {
        // The client reset the stream while it waited for its turn.
        if (stream.closed || stream.destroyed) return;
        contain(
          "listener",
          () => (pseudo[":method"] === "CONNECT" ? handlers.onConnect(request) : handlers.onRequest(request)),
          abort,
        );
      });
      // The client's request is answered; its next one belongs on another connection.
      if (this.#isDraining) session.close();
    };
    this.#server.on("stream", onStream);
  }

  /** Serves a connection whose peer is known to speak HTTP/2. */
  accept(socket: Duplex): void {
    const opened = (session: ServerHttp2Session): void => this.#opened(session, socket);
    this.#server.once("session", opened).emit("connection", socket);
    this.#server.off("session", opened);
    // Treat the client's FIN as a close, like Go's server and nginx. Node would keep the connection, and
    // its streams would keep their backends'.
    socket.once("end", () => socket.destroy());
  }

  /**
   * Sends GOAWAY with the last stream that will be served, so that clients send later ones elsewhere.
   * Open streams continue. node:http2 silently drops later streams if GOAWAY does not name the last one.
   */
  drain(): void {
    this.#isDraining = true;
    for (const session of this.#sessions.keys()) session.close();
  }

  /**
   * Resolves when the connections without open streams have sent everything, or after `timeoutMs`. Call
   * after `drain`.
   */
  async flushed(timeoutMs: number): Promise<void> {
    const ending = [...this.#sessions].filter(([, streams]) => streams.size === 0);
    const ended = ending.map(([session]) => new Promise<void>((resolve) => session.once("close", resolve)));
    await settlesWithin(Promise.all(ended), timeoutMs);
  }

  #opened(session: ServerHttp2Session, socket: Duplex): void {
    const streams = new InFlight<OpenStream>();
    const lane = this.#laneOf(session);
    this.#sessions.set(session, streams);
    session.once("close", () => this.#sessions.delete(session));
    watchHttp2Session(session, socket);
    this.#heads.watch(session, socket, () => streams.size === 0);
    this.#parts.watch(session, socket);
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    let timer: NodeJS.Timeout | undefined;
    const idle = (): void => {
      clearTimeout(timer);
      timer = setTimeout(end, isClosing(session) ? LAST_CLOSE_MS : this.#idleMs).unref();
    };
    // node:http2 does not close a connection within a frame or head, or one that its client keeps open.
    const end = (): void => {
      if (isClosing(session)) socket.destroy();
      else session.close();
      if (!socket.destroyed) idle();
    };
    idle();
    // Closing waits for the queue, and so does the reset of a stream. Ended streams may leave bytes in the
    // queue of TLS or the kernel.
    const stuck = (): void => {
      const isEnding = isClosing(session) || streams.size > 0;
      if (isEnding && [...streams].every(({ stream }) => stream.closed)) socket.destroy();
      else session.setTimeout(this.#takingMs);
    };
    session.on("timeout", stuck);
    session.setTimeout(this.#takingMs);
    let unsentBytes = 0;
    session.on("stream", (stream: ServerHttp2Stream) => {
      clearTimeout(timer);
      const open = { stream, inFlightIndex: -1 };
      streams.add(open);
      stream.on("close", () => {
        streams.delete(open);
        const status = stream.sentHeaders?.[":status"];
        if (status !== undefined) this.#turns.answered(lane, Number(status));
        if (streams.size === 0 && !socket.destroyed) idle();
        // node:http2 never stops counting a reset stream's unsent bytes, and refuses streams beyond
        // maxSessionMemory.
        unsentBytes += stream.writableLength;
        if (unsentBytes > (this.#sessionMemoryMib * MIB) / 2) session.close();
      });
    });
    session.once("close", () => {
      clearTimeout(timer);
      forgetTimer(session);
    });
  }

  /** The connection's lane in the listener's turns. A closed session's socket throws if it is read. */
  #laneOf(session: Http2Session): Lane {
    const lane = this.#lanes.get(session) ?? { remoteAddress: session.socket.remoteAddress };
    this.#lanes.set(session, lane);
    return lane;
  }

  #countReset(session: Http2Session): void {
    if (session.destroyed) return;
    const nowMs = performance.now();
    let resets = this.#resets.get(session);
    if (resets === undefined || nowMs - resets.sinceMs > 1_000) resets = { sinceMs: nowMs, count: 0 };
    resets.count += 1;
    this.#resets.set(session, resets);
    if (resets.count <= MAX_RESETS_A_SECOND) return;
    session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

function ignore(): void {}
