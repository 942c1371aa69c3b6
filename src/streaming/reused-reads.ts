import type { OnReadOpts, Socket } from "node:net";
import type { Duplex } from "node:stream";

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
 * Memories of records that wait for the next socket that needs one: 4 MiB. Dropped, they would be garbage that nobody collects in time. Plain
 * sockets have none: what the kernel has not taken is little, and to use cold memory again cost them more than new memory.
 */
const MAX_SPARE_RECORDS = 256;
const spareRecords: Memory[] = [];
/** So many memories of one socket are remembered to be used again; a queue that never empties would remember more and more. */
const MAX_KEPT_MEMORIES = 8;

/** The memory that one socket reads into. */
class ReadBuffer {
  /** Nobody looks at what was read any more: all of the memory may be overwritten. */
  #isFree = true;
  /** Memories of before that may still be looked at. */
  readonly #kept: Memory[] = [];
  readonly #bulkBytes: number;
  #memory = Buffer.allocUnsafeSlow(QUIET_BYTES);
  /** At the start of the memory: what may still be looked at. */
  #keptBytes = 0;
  #smallReads = 0;

  constructor(transport: keyof typeof BULK_BYTES) {
    this.#bulkBytes = BULK_BYTES[transport];
  }

  /** A chunk is about to be looked at. */
  hold(): void {
    this.#isFree = false;
  }

  /** Nobody looks at the last chunk any more. */
  release(): void {
    this.#isFree = true;
    this.#kept.length = 0;
  }

  /** Nobody looks at any chunk any more. */
  recycle(): void {
    for (const memory of this.#kept) {
      if (spareRecords.length < MAX_SPARE_RECORDS) spareRecords.push(memory);
    }
    this.release();
  }

  /** Where to read to next, after a read that brought `bytesRead`. */
  prepare(bytesRead: number): Buffer {
    const size = this.#nextSize(bytesRead);
    this.#keptBytes = this.#isFree ? 0 : this.#keptBytes + bytesRead;
    if (this.#keptBytes === 0 && size === this.#memory.byteLength) return this.#memory;

    // What is kept shares its memory with what comes next, so that small chunks in a queue do not hold large buffers.
    const restBytes = this.#memory.byteLength - this.#keptBytes;
    if (this.#keptBytes > 0 && restBytes >= MIN_READ_BYTES) return this.#memory.subarray(this.#keptBytes);
    const isRecord = this.#memory.byteLength === BULK_BYTES.tls && this.#bulkBytes === BULK_BYTES.tls;
    if (isRecord && this.#keptBytes > 0 && this.#kept.length < MAX_KEPT_MEMORIES)
      this.#kept.push(this.#memory);
    this.#memory = (size === BULK_BYTES.tls ? spareRecords.pop() : undefined) ?? Buffer.allocUnsafeSlow(size);
    this.#keptBytes = 0;
    return this.#memory;
  }

  #nextSize(bytesRead: number): number {
    const size = this.#memory.byteLength;
    if (bytesRead > size / GROWTH) {
      this.#smallReads = 0;
      return bytesRead >= size - this.#keptBytes ? Math.min(size * GROWTH, this.#bulkBytes) : size;
    }
    this.#smallReads += 1;
    return this.#smallReads >= QUIET_READS ? QUIET_BYTES : size;
  }
}

const buffers = new WeakMap<Duplex, ReadBuffer>();

/**
 * Lets a socket read into the same memory again and again, as long as whoever takes a chunk is done with it when its
 * 'data' event returns and says so (`releaseChunk`). Other chunks have memory of their own, as with any socket.
 *
 * Node makes a 64 KiB ArrayBuffer for each read, and V8 counts them: once the heap is larger than 8 MiB, it marks all of
 * it after some 32 MiB read. At bulk speed these collections cost more than moving the bytes.
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
      this.#buffer.hold();
      this.#pass(memory.subarray(0, bytesRead));
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
    // One read of an encrypted connection may hold several records: they come even while nobody listens yet.
    if (socket.listenerCount("data") > 0 && socket.readableLength === 0) socket.emit("data", chunk);
    else socket.push(Buffer.from(chunk));
  }
}

/** Says, within a socket's 'data' event, that nobody will look at the chunk any more when the event returns. */
export function releaseChunk(socket: Duplex): void {
  buffers.get(socket)?.release();
}

/**
 * Says that nobody looks at any chunk that the socket has ever brought, or, within its 'data' event, will when the event returns: sockets of
 * other sessions may read into their memory then.
 */
export function recycleChunks(socket: Duplex): void {
  buffers.get(socket)?.recycle();
}
