import type { OnReadOpts, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { poisonFreed } from "./freed-memory.ts";

/** A read from TCP brings up to 64 KiB; one from TLS a record, 16 KiB. */
const BULK_BYTES = { tcp: 64 * 1024, tls: 16 * 1024 } as const;
/** What an idle session holds for each socket: a prompt's worth. */
const QUIET_BYTES = 1024;
/** A read that fills its memory makes the next one this much larger; one that fills less than this part of it is small. */
const GROWTH = 8;
/** So many small reads in a row end a bulk transfer. */
const QUIET_READS = 32;
/** A smaller rest is not worth a read of its own. */
const MIN_READ_BYTES = 2 * 1024;

type Memory = ReturnType<typeof Buffer.allocUnsafeSlow>;

/**
 * Memories of TLS records kept for the next socket: 4 MiB. Dropped ones would be garbage that is collected late. For plain sockets
 * reuse cost more than new memory.
 */
const MAX_SPARE_RECORDS = 256;
const spareRecords: Memory[] = [];
/** So many memories of one socket are remembered to be used again; a queue that never empties would remember more and more. */
const MAX_KEPT_MEMORIES = 8;

/**
 * The memory that one socket reads into. Every chunk is held from its 'data' event on, and freed by itself: what frees one says nothing of
 * those that came before it.
 */
class ReadBuffer {
  readonly #bulkBytes: number;
  #memory = Buffer.allocUnsafeSlow(QUIET_BYTES);
  /** Where the present read goes: what lies before it is held. */
  #start = 0;
  #isChunkHeld = false;
  /** What lies before `#start` has become free since the present read began. */
  #areEarlierFree = false;
  /** Memories of before with chunks that are held. */
  readonly #kept: Memory[] = [];
  #smallReads = 0;

  constructor(transport: keyof typeof BULK_BYTES) {
    this.#bulkBytes = BULK_BYTES[transport];
  }

  /** The chunk of the present read is given away. */
  hold(): void {
    this.#isChunkHeld = true;
  }

  /** That chunk is free when its 'data' event returns. Memories of before are not this buffer's any more. */
  release(): void {
    this.#isChunkHeld = false;
    this.#kept.length = 0;
  }

  /** All chunks are free, that of the present read when its 'data' event returns. */
  recycle(): void {
    for (const memory of this.#kept) {
      poisonFreed(memory);
      if (spareRecords.length < MAX_SPARE_RECORDS) spareRecords.push(memory);
    }
    this.release();
    this.#areEarlierFree = true;
    poisonFreed(this.#memory, 0, this.#start);
  }

  /** Where to read to next, after a read that brought `bytesRead`. */
  prepare(bytesRead: number): Buffer {
    const size = this.#nextSize(bytesRead);
    const isFilled = this.#start + bytesRead === this.#memory.byteLength;
    if (this.#isChunkHeld) {
      this.#start += bytesRead;
    } else {
      poisonFreed(this.#memory, this.#start, this.#start + bytesRead);
      if (this.#areEarlierFree) this.#start = 0;
    }
    this.#isChunkHeld = this.#areEarlierFree = false;
    if (this.#start === 0 && size === this.#memory.byteLength) return this.#memory;

    // What is held shares its memory with what comes next, so that small chunks in a queue do not hold large buffers.
    const restBytes = this.#memory.byteLength - this.#start;
    if (this.#start > 0 && restBytes >= MIN_READ_BYTES && !isFilled)
      return this.#memory.subarray(this.#start);
    const isRecord = this.#memory.byteLength === BULK_BYTES.tls && this.#bulkBytes === BULK_BYTES.tls;
    if (isRecord && this.#start > 0 && this.#kept.length < MAX_KEPT_MEMORIES) this.#kept.push(this.#memory);
    this.#memory = (size === BULK_BYTES.tls ? spareRecords.pop() : undefined) ?? Buffer.allocUnsafeSlow(size);
    this.#start = 0;
    return this.#memory;
  }

  #nextSize(bytesRead: number): number {
    const size = this.#memory.byteLength;
    if (bytesRead > size / GROWTH) {
      this.#smallReads = 0;
      return bytesRead >= size - this.#start ? Math.min(size * GROWTH, this.#bulkBytes) : size;
    }
    this.#smallReads += 1;
    return this.#smallReads >= QUIET_READS ? QUIET_BYTES : size;
  }
}

const buffers = new WeakMap<Duplex, ReadBuffer>();

/**
 * Reads into the same memory again. The 'data' listener owns a chunk until `releaseChunk` or `recycleChunks`; one never freed keeps
 * its memory. Node's 64 KiB per read make V8 collect at bulk speed.
 */
export class ReusedReads {
  readonly #buffer: ReadBuffer;
  #socket: Socket | undefined;
  #bytesRead = 0;

  constructor(transport: keyof typeof BULK_BYTES) {
    this.#buffer = new ReadBuffer(transport);
  }

  /** For `net.connect` and `tls.connect`, which then emit no 'data' themselves. */
  readonly options: OnReadOpts & { buffer: () => Buffer } = {
    buffer: () => this.#buffer.prepare(this.#bytesRead),
    callback: (bytesRead, memory) => {
      this.#bytesRead = bytesRead;
      try {
        this.#pass(memory.subarray(0, bytesRead));
      } catch (error) {
        // Node would read into the same memory next, and the chunk may be in a queue already.
        this.#socket?.destroy();
        throw error;
      }
      return true;
    },
  };

  /** To be called with the socket that was connected with `options`, before it reads. */
  attach(socket: Socket): void {
    this.#socket = socket;
    buffers.set(socket, this.#buffer);
  }

  #pass(chunk: Uint8Array): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    // One read of an encrypted connection may hold several records: they come even where there is no listener yet.
    if (socket.listenerCount("data") === 0 || socket.readableLength > 0) {
      socket.push(Buffer.from(chunk));
      return;
    }
    this.#buffer.hold();
    socket.emit("data", chunk);
  }
}

/**
 * Says, within a socket's 'data' event, that its chunk is free when the event returns: all that it was written to has taken or copied it.
 * Chunks of earlier events stay what they are.
 */
export function releaseChunk(socket: Duplex): void {
  buffers.get(socket)?.release();
}

/** Frees all chunks of the socket, the present one when its 'data' event returns: for a socket whose only sink has taken or copied them. */
export function recycleChunks(socket: Duplex): void {
  buffers.get(socket)?.recycle();
}
