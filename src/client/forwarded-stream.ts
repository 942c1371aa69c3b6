import { Duplex } from "node:stream";
import type { SpdyStream, SpdyStreamHandler } from "../../protocols/spdy/index.ts";
import { printable } from "./refusal.ts";
import { SessionError } from "./session-error.ts";

/** What a server says of a failure is a sentence; more of it is dropped. */
export const MAX_ERROR_TEXT_BYTES: number = 4 * 1024;

/** A server that ended the data, and not the error stream, is waited for so long: what failed may follow (containerd). */
export const ERROR_WAIT_MS = 5_000;

/** What a stream needs of its connection. */
export interface ForwardLink {
  /** Sends a chunk on that stream, and calls back when the connection takes more. */
  send(data: SpdyStream, chunk: Uint8Array, taken: () => void): void;
  /** What the local side has not taken changed. */
  bufferedChanged(stream: ForwardedStream): void;
  forget(stream: ForwardedStream): void;
}

/**
 * One connection to a port of a pod, half-closable like a net.Socket. A failure at the far end, which the server tells on the
 * error stream of the pair, is its 'error'; the other connections go on.
 */
export class ForwardedStream extends Duplex {
  readonly port: number;
  readonly #link: ForwardLink;
  #data: SpdyStream | undefined;
  #error: SpdyStream | undefined;
  #errorText = "";
  #hasReadAll = false;
  #hasErrorEnded = false;
  #finished: (() => void) | undefined;
  #errorTimer: NodeJS.Timeout | undefined;

  constructor(port: number, link: ForwardLink) {
    super({ allowHalfOpen: true });
    this.port = port;
    this.#link = link;
  }

  /** The error stream comes first, as client-go opens them; it is only read. */
  readonly errorHandler: SpdyStreamHandler = {
    onData: (part, fin) => {
      if (this.#errorText.length < MAX_ERROR_TEXT_BYTES) this.#errorText += Buffer.from(part).toString();
      if (fin) this.#errorEnded();
    },
    onEnd: () => this.#errorEnded(),
  };

  readonly dataHandler: SpdyStreamHandler = {
    onData: (part, fin) => {
      if (part.byteLength > 0 && !this.#hasReadAll) {
        this.push(part);
        this.#link.bufferedChanged(this);
      }
      if (fin) this.#readAll();
    },
    onEnd: (end) => {
      if (end.type === "session-ended") this.sessionEnded();
      else if (this.#errorText !== "") this.#fail();
      // Go's peers read a reset as an end.
      else this.#readAll();
    },
  };

  attach(error: SpdyStream, data: SpdyStream): void {
    this.#error = error;
    this.#data = data;
  }

  override _read(): void {
    this.#link.bufferedChanged(this);
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void): void {
    if (this.#data === undefined) done();
    else this.#link.send(this.#data, chunk, done);
  }

  /** Done when the error stream has ended, too: before, nothing says that the far end took it all. */
  override _final(done: () => void): void {
    this.#data?.finish();
    this.#finished = done;
    this.#settle();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#errorTimer);
    this.#link.forget(this);
    this.#data?.reset();
    this.#error?.reset();
    done(error);
  }

  #readAll(): void {
    if (this.#hasReadAll) return;
    this.#hasReadAll = true;
    this.push(null);
    this.#settle();
  }

  /** The connection that carries it is gone. */
  sessionEnded(): void {
    if (this.#hasReadAll && this.#finished !== undefined) this.#errorEnded();
    else this.destroy(new SessionError("connection-lost", "lost connection to pod"));
  }

  #errorEnded(): void {
    this.#hasErrorEnded = true;
    if (this.#errorText === "") this.#settle();
    else this.#fail();
  }

  #settle(): void {
    const done = this.#finished;
    if (done === undefined) return;
    if (this.#hasErrorEnded) {
      clearTimeout(this.#errorTimer);
      this.#finished = undefined;
      done();
    } else if (this.#hasReadAll)
      this.#errorTimer ??= setTimeout(() => this.#errorEnded(), ERROR_WAIT_MS).unref();
  }

  #fail(): void {
    this.destroy(new SessionError("remote-failure", printable(this.#errorText).trim()));
  }
}
