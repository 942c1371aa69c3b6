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
export const MAX_UNREAD_PARTS = 65_536;
const FAILURE = "too many small frames were unread";

/**
 * Bounds what small DATA frames cost. libuv reads 2 MiB from one socket in a turn: 200,000 frames
 * of one byte, half a second. An unread frame takes more memory than its bytes.
 */
export class SmallParts {
  /** Connections that rest: the addresses take turns. */
  readonly #resting = new Lanes();
  /** How long the last turn of small frames took. */
  #tookMs = 0;

  watch(session: ServerHttp2Session, socket: Duplex): void {
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
    session.on("stream", (stream: ServerHttp2Stream, _headers: unknown, flags: number) => {
      // A request without a body brings no DATA.
      if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) return;
      let unreadOfStream = 0;
      const forget = (): void => {
        unread -= unreadOfStream;
        unreadOfStream = 0;
      };
      stream.once("close", forget);
      const push = stream.push.bind(stream);
      const counted = (part: unknown, encoding?: BufferEncoding): boolean => {
        if (part === null) return push(part, encoding);
        countPart();
        if (stream.readableLength === 0) forget();
        unread += 1;
        unreadOfStream += 1;
        if (unread === MAX_UNREAD_PARTS) calm(session);
        return push(part, encoding);
      };
      // As a plain property V8 keeps closed streams until it marks the whole heap.
      Object.defineProperty(stream, "push", { value: counted, writable: true, configurable: true });
    });
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

function calm(session: ServerHttp2Session): void {
  if (!session.destroyed) session.destroy(http2Failure(FAILURE), constants.NGHTTP2_ENHANCE_YOUR_CALM);
}
