import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { brokenText } from "../exchange-error.ts";

const FRAME_HEADER_BYTES = 9;
/** What a client must accept until it says otherwise (RFC 9113 section 6.5.2). */
const MAX_FRAME_BYTES = 16_384;

/**
 * A socket whose first bytes are remembered. Node's HTTP/2 takes a socket over and says of an answer in another protocol only that
 * it is wrong; the kubelet's Events say that it looked like HTTP/1.1.
 */
export class ObservedSocket extends Duplex {
  readonly #socket: Socket;
  #start = Buffer.alloc(0);
  #error: Error | undefined;
  #isEnded = false;

  constructor(socket: Socket) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => {
      if (this.#start.length < FRAME_HEADER_BYTES) this.#start = Buffer.concat([this.#start, chunk]);
      if (!this.push(chunk)) socket.pause();
    });
    socket.on("end", () => {
      this.#isEnded = true;
      this.push(null);
    });
    socket.on("error", (error) => {
      this.#error = error;
    });
    socket.on("close", () => {
      this.#isEnded = true;
      this.destroy();
    });
  }

  /** The peer, or the network, has ended the connection. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Why this is no HTTP/2 connection, or no connection any more, in Go's words; undefined where nothing is wrong with it. */
  get brokenText(): string | undefined {
    if (this.#error !== undefined) return brokenText(this.#error, this.#socket);
    const start = this.#start;
    if (start.length >= FRAME_HEADER_BYTES && start.readUIntBE(0, 3) > MAX_FRAME_BYTES) {
      return start.toString("latin1", 0, 9) === "HTTP/1.1 "
        ? "http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header"
        : "http2: frame too large";
    }
    return this.#isEnded ? "unexpected EOF" : undefined;
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    // An error of a write is the socket's: it is told when the socket has closed, with whatever was read before.
    this.#socket.write(chunk, () => done());
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#socket.cork();
    this.#socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk)), () => done());
    this.#socket.uncork();
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(_error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    // The socket's error is told by `brokenText`; thrown at the session it would arrive unread.
    done(null);
  }
}
