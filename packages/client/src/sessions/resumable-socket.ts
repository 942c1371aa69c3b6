import { Duplex } from "node:stream";
import { ABORT, ByteQueue, ResumeSession } from "@sluice/protocols/resume";
import { poisonFreed } from "../net/freed-memory.ts";
import type { UpgradedConnection } from "../net/upgraded-connection.ts";
import { ResumeConnection, type ResumeConnectionOptions } from "./resume-connection.ts";

/**
 * How long a session waits for a client that had been sent everything when its connection ended.
 * Past it the session is over.
 */
const COMPLETED_WINDOW_MS = 10_000;
const READ_AHEAD_BYTES = 16 * 1024;

interface ResumableSocketOptions extends ResumeConnectionOptions {
  /** Limit for unacknowledged bytes, which are buffered here, in each direction. */
  readonly windowBytes: number;
  /** How long the session waits for its next connection, in milliseconds. */
  readonly windowMs: number;
  /** The connection ended; `attach` brings the next one. */
  onDetached?(reason: string): void;
  /** Called when the socket is destroyed, for any reason. */
  onOver?(end: ResumableEnd): void;
}

/**
 * "completed": both sides finished and know it, or the client has all and left; "ended": either side destroyed it; "expired": no new
 * connection within the window; "protocol-error": by the peer.
 */
type ResumableEnd = "completed" | "ended" | "expired" | "protocol-error";

/**
 * A socket that outlives its connections (protocols/resume). Buffers output until the peer has it, and
 * unread input up to the window. It always reads, so silence means a dead connection.
 */
export class ResumableSocket extends Duplex {
  readonly #options: ResumableSocketOptions;
  readonly #session: ResumeSession;
  readonly #held = new ByteQueue(false);
  #connection: ResumeConnection | undefined;
  #wantsMore = false;
  #hasEnded = false;
  #hasPushedEnd = false;
  #unwritten: Uint8Array[] = [];
  #whenWritten: (() => void) | undefined;
  #whenFinished: (() => void) | undefined;
  #detachedMs: number;
  #takenBytes = 0;
  #windowMs: number;
  #isUnreferenced = false;
  #end: ResumableEnd = "ended";

  constructor(options: ResumableSocketOptions) {
    // Kept small: the window is the better buffer for unread input, because it joins small pieces.
    super({ readableHighWaterMark: READ_AHEAD_BYTES });
    this.#options = options;
    this.#detachedMs = options.clock.now();
    this.#windowMs = options.windowMs;
    this.#session = new ResumeSession(options.windowBytes, {
      send: (header, payload) => this.#connection?.send(header, payload),
      onData: (part) => this.#received(part),
      onEnd: () => {
        this.#hasEnded = true;
        this.#deliver();
      },
      onRoom: () => this.#writeOn(),
      onFinished: () => this.#finished(),
      onAbort: (_code, reason) => this.#fail("ended", reason),
      onFreed: (memory) => poisonFreed(memory),
    });
    // The socket's user need not listen for errors.
    this.on("error", () => {});
    options.clock.add(this);
  }

  /** The received bytes, as a resumption reports them to the peer. Constant while there is no connection. */
  get received(): number {
    return this.#session.received;
  }

  /** Grows with the bytes that its connections carry for good, in either direction. */
  get progress(): number {
    return this.#session.received + this.#takenBytes - this.#session.unacknowledgedBytes;
  }

  /** True while there is no connection and one may still come. */
  get isAway(): boolean {
    const { isOver, isComplete } = this.#session;
    return this.#connection === undefined && !this.destroyed && !isOver && !isComplete;
  }

  /** True if this socket does not keep the process alive: see `unref`. */
  get isUnreferenced(): boolean {
    return this.#isUnreferenced;
  }

  /**
   * Bytes written and not yet acknowledged by the peer. `writableLength` counts only those that did not
   * fit into the window.
   */
  get undeliveredBytes(): number {
    return this.#session.unacknowledgedBytes;
  }

  /** Bytes buffered in both directions. */
  get heldBytes(): number {
    return this.#held.byteLength + this.#session.unacknowledgedBytes;
  }

  /** False if the peer lacks bytes that are no longer buffered, or claims bytes that were never sent. */
  canAttach(peerReceived: number): boolean {
    return !this.destroyed && this.#session.canAttach(peerReceived);
  }

  /**
   * Replaces the connection by one whose peer has received `peerReceived` bytes. Call only if
   * `canAttach` returns true.
   */
  attach(leg: UpgradedConnection, peerReceived: number): void {
    this.detach();
    const connection = new ResumeConnection(
      leg,
      {
        onMessage: (part, isFirst, isLast) => this.#session.receive(part, isFirst, isLast),
        onGone: (reason, isFinal) => this.#lost(connection, reason, isFinal),
      },
      this.#options,
    );
    this.#connection = connection;
    if (this.#isUnreferenced) connection.unref();
    connection.cork();
    this.#session.attach(peerReceived);
    connection.uncork();
    connection.start();
  }

  /** Drops the connection, so that it delivers nothing more and `received` stays constant. */
  detach(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#session.detach();
    if (connection !== undefined) this.#detachedMs = this.#options.clock.now();
    connection?.abandon();
  }

  tick(nowMs: number): void {
    this.#connection?.tick(nowMs);
    this.#session.tick();
    if (this.#held.byteLength === 0) this.#held.trim();
    if (this.isAway && nowMs - this.#detachedMs >= this.#windowMs) {
      this.expire("the connection was lost and not resumed in time");
    }
  }

  /** Ends the session, because no new connection will come. */
  expire(reason: string): void {
    this.#fail("expired", reason);
  }

  /** Like a socket's `unref`: the session does not keep the process alive. */
  unref(): this {
    this.#isUnreferenced = true;
    this.#connection?.unref();
    return this;
  }

  override _read(): void {
    this.#wantsMore = true;
    this.#deliver();
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void): void {
    this.#whenWritten = done;
    this.#unwritten.push(chunk);
    this.#writeOn();
  }

  override _writev(chunks: { chunk: Uint8Array }[], done: () => void): void {
    this.#whenWritten = done;
    for (const { chunk } of chunks) this.#unwritten.push(chunk);
    this.#writeOn();
  }

  override _final(done: () => void): void {
    this.#whenFinished = done;
    if (this.#session.isOver) this.#finished();
    else this.#session.finish();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { clock, onOver } = this.#options;
    clock.delete(this);
    if (this.#session.isComplete) this.#end = "completed";
    else this.#session.abort(ABORT.ENDED, "the session was ended");
    const connection = this.#connection;
    this.#connection = undefined;
    this.#session.detach();
    connection?.close();
    this.#held.clear();
    this.#unwritten = [];
    done(error);
    onOver?.(this.#end);
  }

  /**
   * Usually passes the part on at once. Unread parts are copied, so that small pieces do not keep their
   * large chunks in memory.
   */
  #received(part: Uint8Array): void {
    if (this.destroyed) return;
    if (this.#wantsMore && this.#held.byteLength === 0 && this.readableLength === 0) {
      this.#wantsMore = this.push(part);
      this.#session.consumed(part.byteLength);
    } else {
      this.#held.append(part);
      this.#deliver();
    }
  }

  #deliver(): void {
    while (this.#wantsMore && !this.destroyed) {
      const part = this.#held.shift();
      if (part === undefined) break;
      this.#wantsMore = this.push(part);
      this.#session.consumed(part.byteLength);
    }
    if (!this.#hasEnded || this.#hasPushedEnd || this.#held.byteLength > 0 || this.destroyed) return;
    this.#hasPushedEnd = true;
    this.push(null);
  }

  #writeOn(): void {
    const connection = this.#connection;
    connection?.cork();
    while (this.#unwritten.length > 0) {
      const chunk = this.#unwritten[0] as Uint8Array;
      const taken = this.#session.write(chunk);
      this.#takenBytes += taken;
      if (taken < chunk.byteLength) {
        this.#unwritten[0] = chunk.subarray(taken);
        break;
      }
      this.#unwritten.shift();
    }
    connection?.uncork();
    if (this.#unwritten.length > 0) return;
    const done = this.#whenWritten;
    this.#whenWritten = undefined;
    done?.();
  }

  #finished(): void {
    const done = this.#whenFinished;
    this.#whenFinished = undefined;
    done?.();
  }

  #lost(connection: ResumeConnection, reason: string, isFinal: boolean): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#session.detach();
    this.#detachedMs = this.#options.clock.now();
    const { role, windowMs } = this.#options;
    const mayBeDone = role === "server" && this.#session.hasFinished && !connection.wasSilent;
    this.#windowMs = mayBeDone ? Math.min(windowMs, COMPLETED_WINDOW_MS) : windowMs;
    // Neither side owes anything. Input that is still unread stays readable.
    if (this.#session.isComplete) return;
    // A client that received the session's end does not return.
    if (role === "server" && this.#session.isDelivered) this.#fail("completed", reason);
    else if (isFinal) this.#fail(this.#session.isOver ? "protocol-error" : "ended", reason);
    else this.#options.onDetached?.(reason);
  }

  #fail(end: ResumableEnd, reason: string): void {
    if (this.destroyed || this.#session.isComplete) return;
    this.#end = end;
    if (!this.#hasEnded) {
      this.destroy(new Error(reason));
      return;
    }
    // All of the peer's input has arrived and stays readable, but the peer accepts no more output.
    this.#session.abort(ABORT.ENDED, reason);
    this.detach();
    this.#writeOn();
    this.#finished();
  }
}
