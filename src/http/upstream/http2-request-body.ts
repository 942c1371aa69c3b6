import type { ClientHttp2Stream } from "node:http2";
import type { HttpDownstream } from "../downstream/http-downstream.ts";

/** So much of a request's body is kept until there is an answer, for a backend that refuses the stream that it came on. */
export const MAX_KEPT_BODY_BYTES = 64 * 1024;

/** A request's body on its way to the stream of the present attempt, no faster than either side. */
export class Http2RequestBody {
  readonly #downstream: HttpDownstream;
  #stream: ClientHttp2Stream | undefined;
  /** What has been sent so far; undefined once it is more than is kept, or not needed any more. */
  #kept: Buffer[] | undefined = [];
  #keptBytes = 0;

  constructor(downstream: HttpDownstream) {
    this.#downstream = downstream;
  }

  /** Another stream can be given all of it. */
  get isRepeatable(): boolean {
    return this.#kept !== undefined;
  }

  /** To be called for each attempt. */
  sendOn(stream: ClientHttp2Stream): void {
    const { body, isBodyComplete } = this.#downstream;
    const isFirst = this.#stream === undefined;
    this.#stream = stream;
    for (const part of this.#kept ?? []) stream.write(part);
    // An empty body may have ended while the upstream was dialled, and does not end twice.
    if (body.readableEnded) {
      if (isBodyComplete) stream.end();
      return;
    }
    stream.on("drain", () => {
      if (this.#stream === stream) body.resume();
    });
    if (isFirst) body.on("data", this.#pass).once("end", this.#end);
    else body.resume();
  }

  /** There is an answer: it is not sent again. */
  forget(): void {
    this.#kept = undefined;
  }

  /** No attempt takes any more of it. */
  stop(): void {
    this.#stream = undefined;
    this.#kept = undefined;
    this.#downstream.body.off("data", this.#pass).off("end", this.#end);
  }

  /** The backend has refused this stream, and another attempt follows. */
  hold(): void {
    this.#downstream.body.pause();
  }

  readonly #pass = (part: Buffer): void => {
    this.#keep(part);
    const stream = this.#stream;
    if (stream === undefined || !stream.writable) return;
    if (!stream.write(part)) this.#downstream.body.pause();
  };

  readonly #end = (): void => {
    const stream = this.#stream;
    // Of a stream that was reset the body ends as well.
    if (this.#downstream.isBodyComplete && stream?.writableEnded === false) stream.end();
  };

  #keep(part: Buffer): void {
    if (this.#kept === undefined) return;
    this.#keptBytes += part.length;
    if (this.#keptBytes > MAX_KEPT_BODY_BYTES) this.#kept = undefined;
    else this.#kept.push(Buffer.from(part));
  }
}
