import { MAX_PAYLOAD_BYTES, RST } from "./constants.ts";
import { carveDataHeader } from "./frame-encoder.ts";
import type { ControlFrame } from "./frames/control-frame.ts";
import { NO_HEADERS, type SpdyHeaders } from "./header-block.ts";

const NO_BYTES = new Uint8Array(0);

export type StreamEnd = { type: "reset"; status: number } | { type: "session-ended" };

export interface SpdyStreamHandler {
  /**
   * A part of the peer's data: a subarray of the received chunk. `fin` marks the last part, which
   * may be empty.
   */
  onData(part: Uint8Array, fin: boolean): void;
  /**
   * The peer will send no more but did not finish the stream: RST_STREAM, GOAWAY, or the
   * connection's end. Kubernetes' servers end their error stream this way after its data. Called at
   * most once, never after `fin` or our own reset().
   */
  onEnd(end: StreamEnd): void;
  /**
   * The peer accepted a stream that we opened. A `fin` in its reply also arrives as an empty part
   * with `fin`.
   */
  onReply?(fin: boolean): void;
}

export interface SpdyStream {
  readonly id: number;
  readonly headers: SpdyHeaders;
  /**
   * Sends DATA: the header, then `part` itself. Ignores an empty part, and any part once the stream
   * is not writable.
   */
  write(part: Uint8Array): void;
  /** Sends an empty DATA with FIN, once. The peer may still send. */
  finish(): void;
  /** Sends RST_STREAM, once, unless both sides had finished. Nothing is received after it. */
  reset(status?: number): void;
  /**
   * Sends the empty SYN_REPLY for a stream that the peer opened, once. write() and finish() do it
   * themselves.
   */
  reply(): void;
  /** False after finish(), after a reset by either side, and once the session is over. */
  readonly isWritable: boolean;
}

/** The parts of a session that a stream uses. */
interface StreamSession {
  send(bytes: Uint8Array): void;
  sendControl(frame: ControlFrame): void;
  forget(stream: SessionStream): void;
}

// A stream has two directions that end by themselves; it is over when both have, or by a reset, or with its session:
//
//            finish()            DATA with FIN
//   open ----------------> half ----------------> over      (or the other way round)
//     \_____________________\__ reset, RST_STREAM, GOAWAY, end of the connection __> over

/** The session's side of a stream. */
export class SessionStream implements SpdyStream {
  readonly id: number;
  readonly headers: SpdyHeaders;
  readonly #session: StreamSession;
  #handler: SpdyStreamHandler | undefined;
  #owesReply: boolean;
  #awaitsReply: boolean;
  #hasFinished: boolean;
  #hasPeerFinished = false;
  #isOver = false;

  /** Pass `handler` for a stream that we open; `accept` sets it for one that the peer opens. */
  constructor(
    session: StreamSession,
    opening: { streamId: number; headers: SpdyHeaders; unidirectional: boolean },
    handler?: SpdyStreamHandler,
  ) {
    this.#session = session;
    this.id = opening.streamId;
    this.headers = opening.headers;
    this.#handler = handler;
    this.#awaitsReply = handler !== undefined;
    this.#owesReply = handler === undefined;
    this.#hasFinished = opening.unidirectional;
  }

  get isWritable(): boolean {
    return !this.#hasFinished && !this.#isOver;
  }

  write(part: Uint8Array): void {
    if (!this.isWritable) return;
    this.reply();
    if (part.length <= MAX_PAYLOAD_BYTES) this.#writeFrame(part);
    else {
      for (let offset = 0; offset < part.length; offset += MAX_PAYLOAD_BYTES) {
        this.#writeFrame(part.subarray(offset, offset + MAX_PAYLOAD_BYTES));
      }
    }
  }

  finish(): void {
    if (!this.isWritable) return;
    this.reply();
    this.#hasFinished = true;
    this.#session.send(carveDataHeader(this.id, 0, true));
    this.#endIfBothFinished();
  }

  reset(status: number = RST.CANCEL): void {
    if (this.#isOver) return;
    this.#end();
    this.#session.sendControl({ type: "RST_STREAM", streamId: this.id, status });
  }

  reply(): void {
    if (!this.#owesReply || this.#isOver) return;
    this.#owesReply = false;
    this.#session.sendControl({ type: "SYN_REPLY", streamId: this.id, fin: false, headers: NO_HEADERS });
  }

  accept(handler: SpdyStreamHandler): void {
    this.#handler = handler;
    this.reply();
  }

  receiveData(part: Uint8Array, fin: boolean): void {
    // Go does not prevent a peer from writing after its own FIN.
    if (this.#isOver || this.#hasPeerFinished) return;
    if (fin) {
      this.#hasPeerFinished = true;
      this.#endIfBothFinished();
    }
    this.#handler?.onData(part, fin);
  }

  receiveReply(fin: boolean): void {
    if (!this.#awaitsReply || this.#isOver) return;
    this.#awaitsReply = false;
    this.#handler?.onReply?.(fin);
    if (fin) this.receiveData(NO_BYTES, true);
  }

  /** The peer or the connection ended the stream before the peer finished it. */
  receiveEnd(end: StreamEnd): void {
    if (this.#isOver) return;
    this.#end();
    if (!this.#hasPeerFinished) this.#handler?.onEnd(end);
  }

  #writeFrame(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#session.send(carveDataHeader(this.id, part.length, false));
    this.#session.send(part);
  }

  #endIfBothFinished(): void {
    if (this.#hasFinished && this.#hasPeerFinished) this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#session.forget(this);
  }
}
