import type { ClientHttp2Stream } from "node:http2";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { watchBody } from "./silent-body.ts";

/**
 * The part of a request's body that is kept to resend it. Past it an unprocessed request is not
 * resent: 502.
 */
const MAX_KEPT_BODY_BYTES = 64 * 1024;

/**
 * Up to this many bytes wait until the end of the turn, which may bring the end of the body: a gRPC
 * call is then one frame and one write.
 */
const PROMPT_BYTES = 4 * 1024;

const NOTHING_KEPT = Buffer.alloc(0);

/** Sends a request's body to the present attempt's stream, as fast as both sides allow. */
export class Http2RequestBody {
  readonly #downstream: HttpDownstream;
  #stream: ClientHttp2Stream | undefined;
  /**
   * The bytes sent so far, in one memory, because a client may send them one by one; undefined once
   * they exceed the limit or are no longer needed.
   */
  #kept: Buffer | undefined = NOTHING_KEPT;
  #keptBytes = 0;
  /** Hears of each part; see watchBody. */
  watch: ReturnType<typeof watchBody>;

  constructor(downstream: HttpDownstream) {
    this.#downstream = downstream;
  }

  /** True if another stream can get the whole body. */
  get isRepeatable(): boolean {
    return this.#kept !== undefined;
  }

  /** Sends the body on the next attempt's stream. Call this once for each attempt. */
  sendOn(stream: ClientHttp2Stream): void {
    const { body, isBodyComplete } = this.#downstream;
    const isFirst = this.#stream === undefined;
    this.#stream = stream;
    if (this.#keptBytes > 0 && this.#kept !== undefined)
      stream.write(this.#kept.subarray(0, this.#keptBytes));
    // The 'end' of an empty body may have come during the dial, and does not come again.
    if (body.readableEnded) {
      if (isBodyComplete) stream.end();
      return;
    }
    if (isFirst) body.on("data", this.#pass).on("end", this.#end);
    else body.resume();
  }

  /** There is an answer, so the body will not be resent. */
  forget(): void {
    this.#kept = undefined;
  }

  /** No attempt takes more of the body. */
  stop(): void {
    this.#stream = undefined;
    this.#kept = undefined;
    this.#downstream.body.off("data", this.#pass).off("end", this.#end);
  }

  /** The backend refused this stream, and another attempt follows. */
  hold(): void {
    this.#downstream.body.pause();
  }

  readonly #pass = (part: Buffer): void => {
    this.watch?.heard();
    this.#keep(part);
    const stream = this.#stream;
    if (stream === undefined || !stream.writable) return;
    if (part.length <= PROMPT_BYTES && stream.writableCorked === 0) {
      stream.cork();
      setImmediate(() => stream.uncork());
    }
    if (stream.write(part)) return;
    const { body } = this.#downstream;
    body.pause();
    stream.once("drain", () => {
      if (this.#stream === stream) body.resume();
    });
  };

  readonly #end = (): void => {
    const stream = this.#stream;
    // A reset stream's body ends, too, but it is not complete.
    if (this.#downstream.isBodyComplete && stream?.writableEnded === false) stream.end();
  };

  #keep(part: Buffer): void {
    const kept = this.#kept;
    if (kept === undefined) return;
    const bytes = this.#keptBytes + part.length;
    if (bytes > MAX_KEPT_BODY_BYTES) {
      this.#kept = undefined;
      return;
    }
    if (bytes > kept.length) {
      this.#kept = Buffer.allocUnsafe(Math.min(MAX_KEPT_BODY_BYTES, Math.max(bytes, kept.length * 2)));
      kept.copy(this.#kept);
    }
    this.#kept?.set(part, this.#keptBytes);
    this.#keptBytes = bytes;
  }
}
