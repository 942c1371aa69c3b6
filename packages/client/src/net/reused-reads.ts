import type { OnReadOpts, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Memory, poisonFreed, SpareMemories } from "./freed-memory.ts";

/**
 * A TCP read brings up to 64 KiB. A TLS read brings a record of 16 KiB: two are gathered, plus the
 * header that Go sends before them.
 */
const BULK_BYTES = { tcp: 64 * 1024, tls: 36 * 1024 } as const;
/** An idle session's memory for each socket: enough for a prompt. */
const QUIET_BYTES = 1024;
/**
 * A chunk that fills its memory makes the next memory GROWTH times larger. One that fills less than
 * 1/GROWTH of it counts as small.
 */
const GROWTH = 8;
/** This many small chunks in a row end a bulk transfer. */
const QUIET_CHUNKS = 32;
/** A smaller remainder of the memory is not worth a read. */
const MIN_READ_BYTES = 2 * 1024;

/** For plain sockets reuse cost more than new memory. */
const spareOfTls = new SpareMemories(BULK_BYTES.tls);
/** Most memories that one socket keeps for reuse; a queue that never empties would keep more and more. */
const MAX_KEPT_MEMORIES = 8;

const readsOf = new WeakMap<Duplex, ReusedReads>();

/**
 * Reads one socket into the same memory again. A chunk, of one or several reads, is held from its
 * 'data' event until it is freed. TLS bulk records, which Node delivers one by one, are gathered.
 */
export class ReusedReads {
  /** Gathers reads, and gives other sockets its free bulk memories. */
  readonly #isTls: boolean;
  readonly #bulkBytes: number;
  #socket: Socket | undefined;
  #memory = Buffer.allocUnsafeSlow(QUIET_BYTES);
  /** Bytes before this are held. */
  #heldEnd = 0;
  /** The present chunk's start, and the bytes read into it. */
  #start = 0;
  #bytes = 0;
  #isReleased = false;
  /** The last chunk's size, and whether it filled the memory. */
  #lastBytes = 0;
  #isFilled = false;
  /** Earlier memories with held chunks. */
  readonly #kept: Memory[] = [];
  #smallChunks = 0;
  #isScheduled = false;

  constructor(transport: keyof typeof BULK_BYTES) {
    this.#isTls = transport === "tls";
    this.#bulkBytes = BULK_BYTES[transport];
  }

  /** Options for `net.connect` and `tls.connect`, which then emit no 'data' themselves. */
  readonly options: OnReadOpts & { buffer: () => Buffer } = {
    /** The memory for the next read: after the present chunk's bytes, if there are any. */
    buffer: () => {
      if (this.#bytes > 0) return this.#memory.subarray(this.#start + this.#bytes);
      const size = this.#nextSize();
      const { byteLength } = this.#memory;
      this.#start = this.#heldEnd;
      if (this.#start === 0 && size === byteLength) return this.#memory;

      // The next chunk shares a memory with held ones, so that small queued chunks do not each keep a
      // large buffer.
      if (this.#start > 0 && byteLength - this.#start >= MIN_READ_BYTES && !this.#isFilled)
        return this.#memory.subarray(this.#start);
      const isKept = this.#isTls && byteLength === this.#bulkBytes && this.#start > 0;
      if (isKept && this.#kept.length < MAX_KEPT_MEMORIES) this.#kept.push(this.#memory);
      this.#memory =
        this.#isTls && size === this.#bulkBytes ? spareOfTls.take() : Buffer.allocUnsafeSlow(size);
      this.#heldEnd = this.#start = 0;
      return this.#memory;
    },
    callback: (bytesRead) => {
      this.#bytes += bytesRead;
      const { byteLength } = this.#memory;
      const hasRoom = byteLength > QUIET_BYTES && this.#start + this.#bytes < byteLength;
      if (!this.#isTls || !hasRoom) this.#deliver();
      else if (!this.#isScheduled) {
        this.#isScheduled = true;
        setImmediate(this.#turnOver);
      }
      return true;
    },
  };

  /** Call with the socket that was connected with `options`, before it reads. */
  attach(socket: Socket): void {
    this.#socket = socket;
    readsOf.set(socket, this);
    if (!this.#isTls) return;
    // Delivers earlier bytes before an end or a reset.
    socket.prependListener("end", this.#deliver);
    socket.prependListener("error", this.#deliver);
  }

  /** Frees the present chunk alone when its 'data' event returns, and gives up the earlier memories. */
  release(): void {
    this.#isReleased = true;
    this.#kept.length = 0;
  }

  /** Frees all chunks, the present one when its 'data' event returns. */
  recycle(): void {
    for (const memory of this.#kept) spareOfTls.give(memory);
    this.release();
    this.#heldEnd = 0;
    poisonFreed(this.#memory, 0, this.#start);
  }

  #nextSize(): number {
    const size = this.#memory.byteLength;
    if (this.#lastBytes > size / GROWTH) {
      this.#smallChunks = 0;
      return this.#isFilled ? Math.min(size * GROWTH, this.#bulkBytes) : size;
    }
    this.#smallChunks += 1;
    return this.#smallChunks >= QUIET_CHUNKS ? QUIET_BYTES : size;
  }

  readonly #turnOver = (): void => {
    this.#isScheduled = false;
    if (this.#socket?.destroyed === false) this.#deliver();
  };

  /** Passes on the present chunk, if there is one. The listener holds it until it releases it. */
  readonly #deliver = (): void => {
    const socket = this.#socket;
    if (socket === undefined || this.#bytes === 0) return;
    const start = this.#start;
    const end = start + this.#bytes;
    const chunk = this.#memory.subarray(start, end);
    this.#lastBytes = this.#bytes;
    this.#isFilled = end === this.#memory.byteLength;
    this.#isReleased = false;
    try {
      if (socket.listenerCount("data") > 0 && socket.readableLength === 0) socket.emit("data", chunk);
      else {
        // One TLS read may bring several records. They arrive even without a listener.
        socket.push(Buffer.from(chunk));
        this.#isReleased = true;
      }
    } catch (error) {
      // The chunk may already be in a queue, and Node would read into its memory next.
      socket.destroy();
      throw error;
    }
    if (this.#isReleased) poisonFreed(this.#memory, start, end);
    else this.#heldEnd = end;
    this.#start = end;
    this.#bytes = 0;
  };
}

/**
 * Called within a socket's 'data' event: the chunk's bytes have been written or copied, so its memory
 * is free when the event returns. Chunks of earlier events are unaffected.
 */
export function releaseChunk(socket: Duplex): void {
  readsOf.get(socket)?.release();
}

/**
 * Frees all of the socket's chunks, the present one when its 'data' event returns. For sockets whose
 * only sink has written or copied them.
 */
export function recycleChunks(socket: Duplex): void {
  readsOf.get(socket)?.recycle();
}
