import { Duplex } from "node:stream";
import type { SpdyStream, SpdyStreamHandler } from "@sluice/protocols/spdy";
import { printable } from "./refusal.ts";
import { SessionError } from "./sessions/session-error.ts";

/** A server's error is one sentence; the rest is dropped. */
const MAX_ERROR_TEXT_BYTES: number = 4 * 1024;

/**
 * How long to wait for the error stream after the data ended: an error may still follow
 * (containerd).
 */
const ERROR_WAIT_MS = 5_000;

/** The stream's view of its connection. */
export interface ForwardLink {
  /** The server accepted the stream. */
  accepted(stream: ForwardedStream): void;
  /** Data arrived, so the server has most likely read what we sent. */
  answered(): void;
  /** The stream ended without our FIN: the server may never read the rest. */
  abandoned(): void;
  /** Sends a chunk, and calls back once the connection accepts more. */
  send(data: SpdyStream, chunk: Uint8Array, taken: () => void): void;
  /** The amount of unread data changed. */
  bufferedChanged(stream: ForwardedStream): void;
  forget(stream: ForwardedStream): void;
}

/**
 * One connection to a pod's port, half-closable like a net.Socket. A failure that the server
 * reports becomes its 'error'; other connections continue. Once the server ended both streams and
 * all data was read, writes fail with SessionError "remote-closed".
 */
export class ForwardedStream extends Duplex {
  readonly port: number;
  /** True if the server accepted the stream; false if the stream ended first. */
  readonly accepted: Promise<boolean>;
  #resolveAccepted: (isAccepted: boolean) => void = () => {};
  readonly #link: ForwardLink;
  #data: SpdyStream | undefined;
  #error: SpdyStream | undefined;
  #errorText = "";
  /** Frames may end within a character. */
  readonly #errorDecoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #hasReadAll = false;
  #hasErrorEnded = false;
  #isRemoteClosed = false;
  #writing: ((error?: Error | null) => void) | undefined;
  #finished: (() => void) | undefined;
  #errorTimer: NodeJS.Timeout | undefined;

  constructor(port: number, link: ForwardLink) {
    super({ allowHalfOpen: true });
    this.port = port;
    this.#link = link;
    this.accepted = new Promise((resolve) => {
      this.#resolveAccepted = resolve;
    });
  }

  /** The server reads no more, whatever is written; 'remoteClosed' fires when this becomes true. */
  get isRemoteClosed(): boolean {
    return this.#isRemoteClosed;
  }

  /** Opened first, as in client-go; it is only read. */
  readonly errorHandler: SpdyStreamHandler = {
    onData: (part, fin) => {
      if (this.#errorText.length < MAX_ERROR_TEXT_BYTES)
        this.#errorText += this.#errorDecoder.decode(part, { stream: true });
      if (fin) this.#errorEnded();
    },
    onEnd: () => this.#errorEnded(),
  };

  readonly dataHandler: SpdyStreamHandler = {
    onReply: () => {
      this.#link.accepted(this);
      this.#resolveAccepted(true);
    },
    onData: (part, fin) => {
      if (part.byteLength > 0 && !this.#hasReadAll) {
        this.#link.answered();
        this.push(part);
        this.#link.bufferedChanged(this);
      }
      if (fin) this.#readAll();
    },
    onEnd: (end) => {
      if (end.type === "session-ended") this.sessionEnded();
      else if (this.#errorText !== "") this.#fail();
      // Go's peers read a reset as an end.
      else {
        this.#readAll();
        this.#closeRemote();
      }
    },
  };

  attach(error: SpdyStream, data: SpdyStream): void {
    this.#error = error;
    this.#data = data;
  }

  override _read(): void {
    this.#link.bufferedChanged(this);
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#writing = done;
    if (this.#isRemoteClosed) this.#refuseWrite();
    else if (this.#data === undefined) this.#written();
    else this.#link.send(this.#data, chunk, () => this.#written());
  }

  /**
   * Completes once the error stream has ended: before that, nothing confirms that the pod got all
   * data.
   */
  override _final(done: () => void): void {
    this.#data?.finish();
    this.#finished = done;
    this.#settle();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#errorTimer);
    this.#resolveAccepted(false);
    this.#link.forget(this);
    if (this.#data?.isWritable === true) this.#link.abandoned();
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

  /** The connection is closed. */
  sessionEnded(): void {
    if (this.#hasReadAll && this.#finished !== undefined) this.#errorEnded();
    else this.destroy(new SessionError("connection-lost", "lost connection to pod"));
  }

  #errorEnded(): void {
    this.#hasErrorEnded = true;
    if (this.#errorText === "") this.#settle();
    else this.#fail();
  }

  /**
   * The server ended both streams or reset the data; containerd then reads no more
   * (containerd/cri#1470). More data would stall the connection; a reset makes the server drop it.
   */
  #closeRemote(): void {
    if (this.#isRemoteClosed) return;
    this.#isRemoteClosed = true;
    if (this.#data?.isWritable === true) this.#link.abandoned();
    this.#data?.reset();
    this.emit("remoteClosed");
    if (this.#writing !== undefined) this.#refuseWrite();
  }

  #written(): void {
    if (this.#isRemoteClosed) return;
    const done = this.#writing;
    this.#writing = undefined;
    done?.();
  }

  /** An error discards unread data, so it waits until all is read. */
  #refuseWrite(): void {
    const refuse = (): void =>
      this.#writing?.(new SessionError("remote-closed", "the far end closed the connection"));
    if (this.readableEnded) refuse();
    else this.once("end", refuse);
  }

  #settle(): void {
    if (this.#hasErrorEnded && this.#hasReadAll) this.#closeRemote();
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
    this.destroy(
      new SessionError("remote-failure", printable(this.#errorText.slice(0, MAX_ERROR_TEXT_BYTES)).trim()),
    );
  }
}
