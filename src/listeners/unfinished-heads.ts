import { constants, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { http2Failure } from "@sluice/client/internal/net/abort-socket";
import { isClosing } from "../http/watch-http2-session.ts";

/** Checks in the time that a head may take. Its bound is exceeded by two of them at most. */
const CHECKS = 12;
/** A PING's header and payload. */
const PING_BYTES = 17;
const FAILURE = "a request's head did not end in time";

interface Watched {
  readonly session: ServerHttp2Session;
  /** Its `bytesRead` is of the decrypted bytes. */
  readonly socket: Socket;
  /** Whether the connection has no stream. */
  readonly isIdle: () => boolean;
  hasSettings: boolean;
  /** The newest stream whose head is known to be whole, or refused. */
  wholeStreamId: number;
  /** A count of read bytes behind which no frame was unfinished; -1: none is known. */
  boundary: number;
  isPinged: boolean;
  /** Since when a head or frame may be unfinished. */
  sinceMs: number | undefined;
}

/**
 * Ends HTTP/2 connections whose client does not finish the preface, a request's head, or without a
 * stream any frame. node:http2 has no limit for them.
 */
export class UnfinishedHeads {
  readonly #headMs: number;
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor(headMs: number) {
    this.#headMs = headMs;
  }

  watch(session: ServerHttp2Session, socket: Duplex, isIdle: () => boolean): void {
    const watched: Watched = {
      session,
      socket: socket as Socket,
      isIdle,
      hasSettings: false,
      wholeStreamId: 0,
      boundary: -1,
      isPinged: false,
      sinceMs: performance.now(),
    };
    session.once("remoteSettings", () => {
      watched.hasSettings = true;
    });
    session.on("stream", ({ id = 0 }) => {
      watched.wholeStreamId = Math.max(id, watched.wholeStreamId);
      watched.sinceMs = undefined;
    });
    this.#watched.add(watched);
    session.once("close", () => this.#watched.delete(watched));
    this.#timer ??= setInterval(() => this.#check(), this.#headMs / CHECKS).unref();
  }

  #check(): void {
    if (this.#watched.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    const nowMs = performance.now();
    for (const watched of this.#watched) {
      if (!watched.session.destroyed) this.#judge(watched, nowMs);
    }
  }

  #judge(watched: Watched, nowMs: number): void {
    const { session, socket, hasSettings } = watched;
    // nghttp2 knows a stream when its HEADERS begin; node:http2 reports it when they end.
    const isHead = (session.state.lastProcStreamID ?? 0) > watched.wholeStreamId;
    const isFrame = !isClosing(session) && watched.isIdle() && socket.bytesRead !== watched.boundary;
    if (!isHead && !isFrame) {
      watched.sinceMs = undefined;
      return;
    }
    watched.sinceMs ??= nowMs;
    const ageMs = nowMs - watched.sinceMs;
    if (ageMs < this.#headMs) {
      // Most idle clients need no PING: their next request is proof enough.
      if (hasSettings && !watched.isPinged && (isHead || ageMs >= this.#headMs / 2)) ping(watched);
    } else if (isHead || !hasSettings) {
      session.destroy(http2Failure(FAILURE), constants.NGHTTP2_PROTOCOL_ERROR);
      // A closing session waits for its client's end. Its own destruction waits for this turn's.
      if (isClosing(session)) setImmediate(() => socket.destroy());
    }
    // A client that reads slowly, or whose process is stopped, answers late. It loses no bytes.
    else session.close();
  }
}

/** No client can answer within a frame or a header block (RFC 9113 section 4.3). */
function ping(watched: Watched): void {
  const { session, socket } = watched;
  const bytes = socket.bytesRead;
  const streamId = session.state.lastProcStreamID ?? 0;
  watched.isPinged = true;
  session.ping((error) => {
    watched.isPinged = false;
    if (error !== null) return;
    watched.wholeStreamId = Math.max(streamId, watched.wholeStreamId);
    // Any other bytes may be a part of a frame again.
    if (socket.bytesRead === bytes + PING_BYTES) watched.boundary = socket.bytesRead;
    watched.sinceMs = undefined;
  });
}
