import { ProtocolError } from "../protocol-error.ts";
import { ByteQueue } from "./byte-queue.ts";
import {
  ABORT,
  type AbortCode,
  encodeAbort,
  MAX_DATA_BYTES,
  MAX_HEADER_BYTES,
  ResumeFrameDecoder,
  writeAck,
  writeDataHeader,
  writeFin,
} from "./frames.ts";

/**
 * We owe an acknowledgement once this share of the window has arrived, or become free, since the
 * last one.
 */
const ACK_SHARE = 4;

export interface ResumeSessionHandler {
  /**
   * One message for the attached connection. The header is valid only during the call; the payload
   * stays unchanged until the peer acknowledges it.
   */
  send(header: Uint8Array, payload: Uint8Array | undefined): void;
  /**
   * The peer's bytes, each once and in order: a view of the received part. Call `consumed` when
   * done with it.
   */
  onData(part: Uint8Array): void;
  /** The peer's last byte was delivered. */
  onEnd(): void;
  /** `write` accepts bytes again. */
  onRoom(): void;
  /** The peer has acknowledged all bytes and our FIN. */
  onFinished(): void;
  /** The peer ended the session by force. No event follows. */
  onAbort(code: number, reason: string): void;
  /** The peer has acknowledged all bytes in this memory; it will be overwritten. */
  onFreed?(memory: Uint8Array): void;
}

/**
 * Both directions of one session's byte stream, over consecutive connections. It stores sent bytes until the peer
 * acknowledges them, and sends them again if a new connection's peer lacks them. Pure: events in, messages out.
 *
 *     attached <-- attach(peer's received) / detach --> detached        abort, onAbort, isComplete: over
 *
 * A FIN takes one number after the last byte and is acknowledged like a byte. Every frame announces the sender's
 * received bytes and free window, and nothing beyond that window is sent. So a session's connection is always
 * read, even while its own reader rests, and acknowledgements never wait behind payload.
 */
export class ResumeSession {
  readonly #handler: ResumeSessionHandler;
  readonly #windowBytes: number;
  readonly #decoder: ResumeFrameDecoder;
  readonly #header = new Uint8Array(MAX_HEADER_BYTES);
  readonly #replay: ByteQueue;
  /** Offsets of our direction: acknowledged by the peer, written, and the end of the peer's window. */
  #acknowledged = 0;
  #written = 0;
  #limit: number;
  #hasFinished = false;
  /** Offsets of the peer's direction: received, consumed, and last acknowledged to the peer. */
  #received = 0;
  #consumed = 0;
  #hasEnded = false;
  #toldReceived = 0;
  #toldLimit: number;
  #isAttached = false;
  #isOver = false;

  /**
   * `windowBytes`: the most unacknowledged bytes in flight, in either direction. Both peers use the
   * same value.
   */
  constructor(windowBytes: number, handler: ResumeSessionHandler) {
    this.#windowBytes = windowBytes;
    this.#limit = this.#toldLimit = windowBytes;
    this.#handler = handler;
    this.#replay = new ByteQueue(true, handler.onFreed);
    this.#decoder = new ResumeFrameDecoder({
      onData: (offset, part) => this.#dataReceived(offset, part),
      onFin: (offset) => this.#finReceived(offset),
      onAck: (received, free) => this.#acknowledgedBy(received, free),
      onAbort: (code, reason) => {
        this.#over();
        handler.onAbort(code, reason);
      },
    });
  }

  /** The next offset that we expect from the peer; a resumption sends it. */
  get received(): number {
    return this.#received;
  }

  /** The number of bytes that a new connection would send again. */
  get unacknowledgedBytes(): number {
    return this.#replay.byteLength;
  }

  /** True if both directions have ended and both peers know it. */
  get isComplete(): boolean {
    return this.#hasEnded && this.isDelivered;
  }

  /** True if the peer has acknowledged all of our direction, including its end. */
  get isDelivered(): boolean {
    return this.#hasFinished && this.#acknowledged > this.#written;
  }

  /** True if our direction has ended; the peer may not know it yet. */
  get hasFinished(): boolean {
    return this.#hasFinished;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Returns how many bytes it accepted and copied; the rest must wait for `onRoom`. */
  write(bytes: Uint8Array): number {
    if (this.#isOver || this.#hasFinished) return bytes.byteLength;
    const room = Math.max(0, Math.min(this.#limit, this.#acknowledged + this.#windowBytes) - this.#written);
    const taken = bytes.byteLength <= room ? bytes : bytes.subarray(0, room);
    this.#replay.append(taken, (view) => {
      const offset = this.#written;
      this.#written += view.byteLength;
      if (this.#isAttached) this.#sendData(offset, view);
    });
    return taken.byteLength;
  }

  /** Ends our direction. */
  finish(): void {
    if (this.#isOver || this.#hasFinished) return;
    this.#hasFinished = true;
    if (this.#isAttached) this.#sendFin();
  }

  /** Our side has processed that many delivered bytes, so the peer may send as many more. */
  consumed(byteLength: number): void {
    this.#consumed += byteLength;
    const freed = this.#consumed + this.#windowBytes - this.#toldLimit;
    if (freed * ACK_SHARE >= this.#windowBytes) this.acknowledge();
  }

  /**
   * Reads a part of a message. Throws ProtocolError if the peer violates the protocol or
   * contradicts itself; the session is over then.
   */
  receive(part: Uint8Array, isFirst: boolean, isLast: boolean): void {
    if (this.#isOver || !this.#isAttached) return;
    try {
      this.#decoder.push(part, isFirst, isLast);
    } catch (error) {
      if (error instanceof ProtocolError) this.abort(ABORT.PROTOCOL_ERROR, error.message);
      throw error;
    }
    if (this.#isOver || this.#hasEnded) return;
    const isDue = (this.#received - this.#toldReceived) * ACK_SHARE >= this.#windowBytes;
    if (isDue) this.acknowledge();
  }

  /** False if the peer lacks bytes that we no longer store, or acknowledges bytes that we never sent. */
  canAttach(peerReceived: number): boolean {
    const sent = this.#written + (this.#hasFinished ? 1 : 0);
    return !this.#isOver && peerReceived >= this.#acknowledged && peerReceived <= sent;
  }

  /**
   * Attaches a connection whose peer has received this many bytes, and sends the rest again. Check
   * `canAttach` first.
   */
  attach(peerReceived: number): void {
    this.#decoder.reset();
    this.#isAttached = true;
    this.#advance(peerReceived);
    // The last acknowledgement may have been lost with the old connection. A new session has
    // nothing to acknowledge.
    if (peerReceived > 0 || this.#received > 0) this.acknowledge();
    let offset = this.#acknowledged;
    this.#replay.visit(0, (view) => {
      this.#sendData(offset, view);
      offset += view.byteLength;
    });
    if (this.#hasFinished && this.#acknowledged <= this.#written) this.#sendFin();
    this.#tellProgress();
  }

  /** The connection was lost. */
  detach(): void {
    this.#isAttached = false;
  }

  /**
   * Acknowledges new bytes, if there are any. Call this regularly, so that small amounts are
   * acknowledged, too.
   */
  tick(): void {
    const limit = this.#consumed + this.#windowBytes;
    if (this.#received !== this.#toldReceived || limit !== this.#toldLimit) this.acknowledge();
    else if (this.#replay.byteLength === 0) this.#replay.trim();
  }

  acknowledge(): void {
    if (!this.#isAttached || this.#isOver) return;
    const bytes = writeAck(this.#header, this.#received, this.#tell());
    this.#handler.send(this.#header.subarray(0, bytes), undefined);
  }

  /** Ends the session by force. Unacknowledged bytes may be lost; a connected peer gets an ABORT. */
  abort(code: AbortCode, reason: string): void {
    if (this.#isOver) return;
    const isAttached = this.#isAttached;
    this.#over();
    if (isAttached) this.#handler.send(encodeAbort(code, reason), undefined);
  }

  #over(): void {
    this.#isOver = true;
    this.#isAttached = false;
    this.#replay.clear();
  }

  #dataReceived(offset: number, part: Uint8Array): void {
    if (this.#isOver) return;
    const end = offset + part.byteLength;
    if (offset > this.#received) throw contradiction("bytes are missing before those that came");
    // A resumption made the peer send bytes again that were already on their way.
    if (end <= this.#received) return;
    if (this.#hasEnded) throw contradiction("bytes came behind the end");
    if (end > this.#consumed + this.#windowBytes) throw contradiction("more came than there is room for");
    const fresh = part.subarray(this.#received - offset);
    this.#received = end;
    this.#handler.onData(fresh);
  }

  #finReceived(offset: number): void {
    if (this.#isOver) return;
    if (this.#hasEnded && offset === this.#received - 1) return;
    if (this.#hasEnded || offset !== this.#received) throw contradiction("the end is not where it was");
    this.#hasEnded = true;
    this.#received += 1;
    this.#consumed += 1;
    this.acknowledge();
    this.#handler.onEnd();
  }

  #acknowledgedBy(received: number, free: number): void {
    if (this.#isOver) return;
    const sent = this.#written + (this.#hasFinished ? 1 : 0);
    if (received > sent) throw contradiction("the peer acknowledges what was never sent");
    // Ignores older acknowledgements: a resumption may have acknowledged more before.
    this.#limit = Math.max(this.#limit, received + free);
    if (received > this.#acknowledged) this.#advance(received);
    this.#tellProgress();
  }

  #advance(received: number): void {
    const dropped = Math.min(received, this.#written) - Math.min(this.#acknowledged, this.#written);
    this.#acknowledged = received;
    this.#replay.drop(dropped);
  }

  #tellProgress(): void {
    if (this.#hasFinished) {
      if (this.isDelivered) this.#handler.onFinished();
    } else if (Math.min(this.#limit, this.#acknowledged + this.#windowBytes) > this.#written) {
      this.#handler.onRoom();
    }
  }

  #sendData(offset: number, view: Uint8Array): void {
    for (let at = 0; at < view.byteLength; at += MAX_DATA_BYTES) {
      const payload = view.subarray(at, at + MAX_DATA_BYTES);
      const bytes = writeDataHeader(this.#header, offset + at, this.#received, this.#tell());
      this.#handler.send(this.#header.subarray(0, bytes), payload);
    }
  }

  #sendFin(): void {
    const bytes = writeFin(this.#header, this.#written, this.#received, this.#tell());
    this.#handler.send(this.#header.subarray(0, bytes), undefined);
  }

  /** The free window that this frame announces. */
  #tell(): number {
    this.#toldReceived = this.#received;
    this.#toldLimit = this.#consumed + this.#windowBytes;
    return this.#toldLimit - this.#received;
  }
}

function contradiction(message: string): ProtocolError {
  return new ProtocolError("malformed-message", message);
}
