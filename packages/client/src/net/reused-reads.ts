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

/**
 * The memory that one socket reads into. A chunk, of one or several reads, is held from its 'data'
 * event until it is freed. Freeing one does not free earlier ones.
 */
class ReadBuffer {
  /** True if other sockets get its free bulk memories. */
  readonly #isShared: boolean;
  readonly #bulkBytes: number;
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

  constructor(transport: keyof typeof BULK_BYTES) {
    this.#isShared = transport === "tls";
    this.#bulkBytes = BULK_BYTES[transport];
  }

  /** Counts a read. Returns true if the chunk is bulk and has room for more. */
  add(bytesRead: number): boolean {
    this.#bytes += bytesRead;
    const { byteLength } = this.#memory;
    return byteLength > QUIET_BYTES && this.#start + this.#bytes < byteLength;
  }

  /** Passes on the present chunk, if there is one. If `pass` returns true, it is held until it is released. */
  give(pass: (chunk: Uint8Array) => boolean): void {
    if (this.#bytes === 0) return;
    const start = this.#start;
    const end = start + this.#bytes;
    this.#lastBytes = this.#bytes;
    this.#isFilled = end === this.#memory.byteLength;
    this.#isReleased = false;
    const isTaken = pass(this.#memory.subarray(start, end));
    if (isTaken && !this.#isReleased) this.#heldEnd = end;
    else poisonFreed(this.#memory, start, end);
    this.#start = end;
    this.#bytes = 0;
  }

  /** Frees that chunk when its 'data' event returns. This buffer gives up its earlier memories. */
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

  /** The memory for the next read: after the present chunk's bytes, if there are any. */
  next(): Buffer {
    if (this.#bytes > 0) return this.#memory.subarray(this.#start + this.#bytes);
    const size = this.#nextSize();
    const { byteLength } = this.#memory;
    this.#start = this.#heldEnd;
    if (this.#start === 0 && size === byteLength) return this.#memory;

    // The next chunk shares a memory with held ones, so that small queued chunks do not each keep a large
    // buffer.
    if (this.#start > 0 && byteLength - this.#start >= MIN_READ_BYTES && !this.#isFilled)
      return this.#memory.subarray(this.#start);
    const isKept = this.#isShared && byteLength === this.#bulkBytes && this.#start > 0;
    if (isKept && this.#kept.length < MAX_KEPT_MEMORIES) this.#kept.push(this.#memory);
    this.#memory =
      this.#isShared && size === this.#bulkBytes ? spareOfTls.take() : Buffer.allocUnsafeSlow(size);
    this.#heldEnd = this.#start = 0;
    return this.#memory;
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
}

const buffers = new WeakMap<Duplex, ReadBuffer>();

/**
 * Reads into the same memory again. The 'data' listener owns a chunk until it frees it; an unfreed
 * chunk keeps its memory. TLS bulk records, which Node delivers one by one, are gathered within a
 * turn.
 */
export class ReusedReads {
  readonly #gathers: boolean;
  readonly #buffer: ReadBuffer;
  #socket: Socket | undefined;
  #isScheduled = false;

  constructor(transport: keyof typeof BULK_BYTES) {
    this.#gathers = transport === "tls";
    this.#buffer = new ReadBuffer(transport);
  }

  /** Options for `net.connect` and `tls.connect`, which then emit no 'data' themselves. */
  readonly options: OnReadOpts & { buffer: () => Buffer } = {
    buffer: () => this.#buffer.next(),
    callback: (bytesRead) => {
      const hasRoom = this.#buffer.add(bytesRead);
      if (!this.#gathers || !hasRoom) this.#deliver();
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
    buffers.set(socket, this.#buffer);
    if (!this.#gathers) return;
    // Delivers earlier bytes before an end or a reset.
    socket.prependListener("end", this.#deliver);
    socket.prependListener("error", this.#deliver);
  }

  readonly #turnOver = (): void => {
    this.#isScheduled = false;
    if (this.#socket?.destroyed === false) this.#deliver();
  };

  readonly #deliver = (): void => {
    try {
      this.#buffer.give(this.#pass);
    } catch (error) {
      // The chunk may already be in a queue, and Node would read into its memory next.
      this.#socket?.destroy();
      throw error;
    }
  };

  /** Returns true if a listener has got the chunk. */
  readonly #pass = (chunk: Uint8Array): boolean => {
    const socket = this.#socket;
    if (socket === undefined) return false;
    // One TLS read may bring several records. They arrive even without a listener.
    if (socket.listenerCount("data") === 0 || socket.readableLength > 0) {
      socket.push(Buffer.from(chunk));
      return false;
    }
    socket.emit("data", chunk);
    return true;
  };
}

/**
 * Called within a socket's 'data' event: the chunk's bytes have been written or copied, so its memory
 * is free when the event returns. Chunks of earlier events are unaffected.
 */
export function releaseChunk(socket: Duplex): void {
  buffers.get(socket)?.release();
}

/**
 * Frees all of the socket's chunks, the present one when its 'data' event returns. For sockets whose
 * only sink has written or copied them.
 */
export function recycleChunks(socket: Duplex): void {
  buffers.get(socket)?.recycle();
}
