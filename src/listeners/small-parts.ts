import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { http2Failure } from "@sluice/client/internal/net/abort-socket";
import { setResting } from "../http/watch-http2-session.ts";
import { Lanes } from "./request-turns.ts";

/**
 * DATA frames of an HTTP/2 connection in one turn of the event loop. Past it the connection is not
 * read for as long as they took, and 1 ms at least: addresses take turns.
 */
const PARTS_A_TURN = 256;
const MIN_REST_MS = 1;
/**
 * Unread DATA frames of an HTTP/2 connection, of less than 16 bytes each in its whole window. Past
 * it: ENHANCE_YOUR_CALM.
 */
const MAX_UNREAD_PARTS = 65_536;
const FAILURE = "too many small frames were unread";
/**
 * Bytes of an HTTP/2 client's frames without heads or bodies (PRIORITY, PING, padding) at once; then
 * 256 KiB a second, and half of what it is sent. Past it: ENHANCE_YOUR_CALM.
 */
const MAX_OTHER_FRAME_BYTES = 2 * 1024 * 1024;
/** gRPC's Go client sends 30 bytes for each round trip in which it receives. */
const OTHER_FRAME_BYTES_A_SECOND = 256 * 1024;
const FLOOD = "too many frames had neither a head nor a body";
const LOOK_MS = 250;
/** The header of a frame. */
const FRAME_BYTES = 9;
/** What a client may send for each stream besides: RST_STREAM, priorities, windows, trailers. */
const BYTES_BESIDE_A_STREAM = 256;

/** What a connection may still send, as of the last look. */
interface Allowance {
  readonly session: ServerHttp2Session;
  readonly socket: Socket;
  left: number;
  /** Bytes of heads and bodies since then. */
  useful: number;
  read: number;
  written: number;
  lookedMs: number;
}

/**
 * Bounds what small DATA frames cost: libuv reads 2 MiB from one socket in a turn, 200,000 of them,
 * half a second. Of other types Node.js reports few frames, so their bytes are counted.
 */
export class SmallParts {
  readonly #windowBytes: number;
  readonly #allowances = new Set<Allowance>();
  #timer: NodeJS.Timeout | undefined;
  /** Connections that rest: the addresses take turns. */
  readonly #resting = new Lanes();
  /** How long the last turn of small frames took. */
  #tookMs = 0;

  /** `windowBytes`: what the client of one stream may send before it knows that the stream is closed. */
  constructor(windowBytes: number) {
    this.#windowBytes = windowBytes;
  }

  watch(session: ServerHttp2Session, socket: Duplex): void {
    const allowance = this.#allow(session, socket as Socket);
    let partsOfTurn = 0;
    let startMs = 0;
    let unread = 0;
    const resume = (): void => setResting(socket, false);
    const turnOver = (): void => {
      if (partsOfTurn > PARTS_A_TURN) this.#rest(socket as Socket, resume, performance.now() - startMs);
      partsOfTurn = 0;
    };
    const countPart = (): void => {
      partsOfTurn += 1;
      if (partsOfTurn === 1) {
        startMs = performance.now();
        setImmediate(turnOver);
      }
      // libuv passes on what it has read, up to 64 KiB, and reads no more.
      if (partsOfTurn === PARTS_A_TURN + 1) setResting(socket, true);
    };
    const onStream = (
      stream: ServerHttp2Stream,
      _headers: unknown,
      flags: number,
      rawHeaders: readonly string[],
    ): void => {
      allowance.useful += BYTES_BESIDE_A_STREAM;
      for (const text of rawHeaders) allowance.useful += text.length + 2;
      // A request without a body brings no DATA.
      if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) return;
      let unreadOfStream = 0;
      const forget = (): void => {
        unread -= unreadOfStream;
        unreadOfStream = 0;
      };
      stream.on("close", () => {
        forget();
        if (!stream.readableEnded) allowance.useful += this.#windowBytes;
      });
      const push = stream.push.bind(stream);
      const counted = (part: unknown, encoding?: BufferEncoding): boolean => {
        if (part === null) return push(part, encoding);
        countPart();
        allowance.useful += FRAME_BYTES + (part as Uint8Array).length;
        if (stream.readableLength === 0) forget();
        unread += 1;
        unreadOfStream += 1;
        if (unread === MAX_UNREAD_PARTS) calm(session, FAILURE);
        return push(part, encoding);
      };
      // As a plain property V8 keeps closed streams until it marks the whole heap.
      Object.defineProperty(stream, "push", { value: counted, writable: true, configurable: true });
    };
    session.on("stream", onStream);
  }

  #allow(session: ServerHttp2Session, socket: Socket): Allowance {
    const { bytesRead: read, bytesWritten: written } = socket;
    const lookedMs = performance.now();
    const allowance = { session, socket, left: MAX_OTHER_FRAME_BYTES, useful: 0, read, written, lookedMs };
    this.#allowances.add(allowance);
    session.once("close", () => this.#allowances.delete(allowance));
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref();
    return allowance;
  }

  #look(): void {
    if (this.#allowances.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    const nowMs = performance.now();
    for (const each of this.#allowances) {
      const { bytesRead: read, bytesWritten: written } = each.socket;
      const gained = ((nowMs - each.lookedMs) / 1_000) * OTHER_FRAME_BYTES_A_SECOND;
      const left = each.left + gained + each.useful + (written - each.written) / 2 - (read - each.read);
      Object.assign(each, { left: Math.min(left, MAX_OTHER_FRAME_BYTES), useful: 0, read, written });
      each.lookedMs = nowMs;
      if (left < 0) calm(each.session, FLOOD);
    }
  }

  /** One connection is read again at a time, so that all of them together take half of the time. */
  #rest(socket: Socket, resume: () => void, tookMs: number): void {
    this.#tookMs = tookMs;
    this.#resting.add(socket, resume);
    if (this.#resting.size === 1) this.#schedule();
  }

  #schedule(): void {
    setTimeout(this.#resumeNext, Math.max(MIN_REST_MS, this.#tookMs));
  }

  readonly #resumeNext = (): void => {
    const resume = this.#resting.next();
    if (this.#resting.size > 0) this.#schedule();
    resume?.();
  };
}

function calm(session: ServerHttp2Session, failure: string): void {
  if (!session.destroyed) session.destroy(http2Failure(failure), constants.NGHTTP2_ENHANCE_YOUR_CALM);
}
