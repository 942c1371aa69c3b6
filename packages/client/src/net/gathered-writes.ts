import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { type Memory, SpareMemories } from "./freed-memory.ts";

/** Three TLS records: as much as one read of an encrypted connection usually brings. */
const GATHER_BYTES = 48 * 1024;
/**
 * Up to this many bytes leave at once, as for a prompt. Larger writes are gathered until the turn of
 * the event loop ends.
 */
const PROMPT_BYTES = 4 * 1024;
const spare = new SpareMemories(GATHER_BYTES);

type Done = (error?: Error | null) => void;
type Piece = { readonly chunk: Buffer | string; readonly encoding: BufferEncoding };

/** Pieces that wait for room, `offset` bytes into the first uncopied one, and their write's callback. */
interface Waiting {
  readonly pieces: readonly Piece[];
  at: number;
  offset: number;
  readonly done: Done;
}

/**
 * Copies writes to a TLS socket into its own memory and sends large pieces. The stream would keep each
 * chunk until the next turn; a copy frees it at once, and Node copies pieces anyway.
 */
class GatheredWrites {
  readonly #socket: TLSSocket;
  readonly #send: TLSSocket["_write"];
  readonly #finish: TLSSocket["_final"];
  #memory: Memory | undefined;
  #gatheredBytes = 0;
  #sending: Memory | undefined;
  #sendingBytes = 0;
  #isScheduled = false;
  #waiting: Waiting | undefined;
  #ending: Done | undefined;

  constructor(socket: TLSSocket) {
    this.#socket = socket;
    this.#send = socket._write;
    this.#finish = socket._final;
    socket._writev = (pieces, done) => this.#take(pieces as Piece[], done);
    socket._write = (chunk, encoding, done) => this.#take([{ chunk, encoding }], done);
    // Node calls it after every earlier write is done, so nothing is waiting.
    socket._final = (done) => {
      this.#ending = done;
      this.#flush();
    };
  }

  get unsentBytes(): number {
    return this.#gatheredBytes + this.#sendingBytes;
  }

  #take(pieces: readonly Piece[], done: Done): void {
    this.#waiting = { pieces, at: 0, offset: 0, done };
    this.#gather();
  }

  /** Copies waiting pieces until the memory is full. */
  #gather(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    const { pieces, done } = waiting;
    this.#memory ??= this.#promptMemory(pieces);
    while (waiting.at < pieces.length) {
      if (this.#gatheredBytes === this.#memory?.byteLength) {
        if (this.#sending !== undefined) return;
        this.#flush();
        // The write failed, or the socket is gone.
        if (this.#waiting !== waiting || this.#socket.destroyed) return;
      }
      this.#copyOf(waiting, pieces[waiting.at] as Piece);
    }
    this.#waiting = undefined;
    if (this.#sending === undefined) {
      if (this.#gatheredBytes <= PROMPT_BYTES) this.#flush();
      else this.#flushAfterTurn();
    }
    done();
  }

  /**
   * A single small piece that leaves at once, such as a heartbeat, gets memory of its own size: a
   * thousand of them in one turn would take a thousand large memories.
   */
  #promptMemory(pieces: readonly Piece[]): Memory | undefined {
    const chunk = pieces[0]?.chunk;
    if (pieces.length !== 1 || typeof chunk !== "object" || this.#sending !== undefined) return undefined;
    return chunk.byteLength > 0 && chunk.byteLength <= PROMPT_BYTES
      ? Buffer.allocUnsafe(chunk.byteLength)
      : undefined;
  }

  #copyOf(waiting: Waiting, { chunk, encoding }: Piece): void {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
    this.#memory ??= spare.take();
    const room = this.#memory.byteLength - this.#gatheredBytes;
    const isWhole = waiting.offset === 0 && bytes.byteLength <= room;
    const part = isWhole ? bytes : bytes.subarray(waiting.offset, waiting.offset + room);
    this.#memory.set(part, this.#gatheredBytes);
    this.#gatheredBytes += part.byteLength;
    waiting.offset += part.byteLength;
    if (waiting.offset < bytes.byteLength) return;
    waiting.at += 1;
    waiting.offset = 0;
  }

  #flushAfterTurn(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#turnOver);
  }

  readonly #turnOver = (): void => {
    this.#isScheduled = false;
    this.#flush();
  };

  #flush(): void {
    if (this.#sending !== undefined || this.#socket.destroyed) return;
    const memory = this.#memory;
    if (memory !== undefined && this.#gatheredBytes > 0) {
      this.#memory = undefined;
      this.#sending = memory;
      this.#sendingBytes = this.#gatheredBytes;
      this.#gatheredBytes = 0;
      this.#send.call(
        this.#socket,
        memory.subarray(0, this.#sendingBytes),
        "buffer" as BufferEncoding,
        this.#sent,
      );
    } else if (this.#ending !== undefined) {
      const done = this.#ending;
      this.#ending = undefined;
      this.#finish.call(this.#socket, done);
    }
  }

  readonly #sent: Done = (error) => {
    const memory = this.#sending;
    this.#sending = undefined;
    this.#sendingBytes = 0;
    if (error || this.#socket.destroyed) {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      this.#socket.destroy(error ?? undefined);
      waiting?.done(error);
      return;
    }
    if (memory?.byteLength === GATHER_BYTES) spare.give(memory);
    this.#gather();
    this.#flush();
  };
}

const gathered = new WeakMap<Duplex, GatheredWrites>();

/**
 * From now on writes to a TLS socket leave in large pieces. While there is room, a write is done when
 * `write` returns.
 */
export function gatherWrites(socket: Duplex): void {
  if (socket instanceof TLSSocket && !gathered.has(socket)) gathered.set(socket, new GatheredWrites(socket));
}

/** Bytes written to a socket and not yet sent, in any buffer of this process. */
export function unsentBytesOf(socket: Duplex): number {
  return socket.writableLength + (gathered.get(socket)?.unsentBytes ?? 0);
}
