import type { OnReadOpts, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { poisonFreed } from "./freed-memory.ts";

/** A read from TCP brings up to 64 KiB; one from TLS a record of 16 KiB: two are gathered, and the header that Go sends before. */
const BULK_BYTES = { tcp: 64 * 1024, tls: 36 * 1024 } as const;
/** What an idle session holds for each socket: a prompt's worth. */
const QUIET_BYTES = 1024;
/** A chunk that fills its memory makes the next one this much larger; one that fills less than this part of it is small. */
const GROWTH = 8;
/** So many small chunks in a row end a bulk transfer. */
const QUIET_CHUNKS = 32;
/** A smaller rest is not worth a read of its own. */
const MIN_READ_BYTES = 2 * 1024;

type Memory = ReturnType<typeof Buffer.allocUnsafeSlow>;

/**
 * Memories of TLS bulk kept for the next socket: 4 MiB. Dropped ones would be garbage that is collected late. For plain sockets
 * reuse cost more than new memory.
 */
const MAX_SPARE_MEMORIES = 112;
const spareMemories: Memory[] = [];
/** So many memories of one socket are remembered to be used again; a queue that never empties would remember more and more. */
const MAX_KEPT_MEMORIES = 8;

/**
 * The memory that one socket reads into. A chunk, of one read or several, is held from its 'data' event on, and freed by itself: what
 * frees one says nothing of those that came before it.
 */
class ReadBuffer {
  /** Other sockets get its bulk memories when they are free. */
  readonly #isShared: boolean;
  readonly #bulkBytes: number;
  #memory = Buffer.allocUnsafeSlow(QUIET_BYTES);
  /** What lies before it is held. */
  #heldEnd = 0;
  /** Where the present chunk begins, and what was read of it. */
  #start = 0;
  #bytes = 0;
  #isChunkHeld = false;
  /** The size of the last chunk, and whether it filled the memory. */
  #lastBytes = 0;
  #isFilled = false;
  /** Memories of before with chunks that are held. */
  readonly #kept: Memory[] = [];
  #smallChunks = 0;

  constructor(transport: keyof typeof BULK_BYTES) {
    this.#isShared = transport === "tls";
    this.#bulkBytes = BULK_BYTES[transport];
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** Counts a read; `true`: the chunk is one of bulk that has room for more. */
  add(bytesRead: number): boolean {
    this.#bytes += bytesRead;
    const { byteLength } = this.#memory;
    return byteLength > QUIET_BYTES && this.#start + this.#bytes < byteLength;
  }

  /** Gives the present chunk to `pass`; unless it is released meanwhile, it is held then. */
  give(pass: (chunk: Uint8Array) => void): void {
    const [start, end] = [this.#start, this.#start + this.#bytes];
    this.#lastBytes = this.#bytes;
    this.#isFilled = end === this.#memory.byteLength;
    this.#isChunkHeld = false;
    pass(this.#memory.subarray(start, end));
    if (this.#isChunkHeld) this.#heldEnd = end;
    else poisonFreed(this.#memory, start, end);
    this.#start = end;
    this.#bytes = 0;
  }

  /** The present chunk is given to a listener. */
  hold(): void {
    this.#isChunkHeld = true;
  }

  /** That chunk is free when its 'data' event returns. Memories of before are not this buffer's any more. */
  release(): void {
    this.#isChunkHeld = false;
    this.#kept.length = 0;
  }

  /** All chunks are free, the present one when its 'data' event returns. */
  recycle(): void {
    for (const memory of this.#kept) {
      poisonFreed(memory);
      if (spareMemories.length < MAX_SPARE_MEMORIES) spareMemories.push(memory);
    }
    this.release();
    this.#heldEnd = 0;
    poisonFreed(this.#memory, 0, this.#start);
  }

  /** Where to read to next: behind what was read of the present chunk, if anything. */
  next(): Buffer {
    if (this.#bytes > 0) return this.#memory.subarray(this.#start + this.#bytes);
    const size = this.#nextSize();
    const { byteLength } = this.#memory;
    this.#start = this.#heldEnd;
    if (this.#start === 0 && size === byteLength) return this.#memory;

    // What is held shares its memory with what comes next, so that small chunks in a queue do not hold large buffers.
    if (this.#start > 0 && byteLength - this.#start >= MIN_READ_BYTES && !this.#isFilled)
      return this.#memory.subarray(this.#start);
    const isKept = this.#isShared && byteLength === this.#bulkBytes && this.#start > 0;
    if (isKept && this.#kept.length < MAX_KEPT_MEMORIES) this.#kept.push(this.#memory);
    const spare = this.#isShared && size === this.#bulkBytes ? spareMemories.pop() : undefined;
    this.#memory = spare ?? Buffer.allocUnsafeSlow(size);
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
 * Reads into the same memory again. The 'data' listener owns a chunk until it frees it; one never
 * freed keeps its memory. Records of TLS bulk, which Node gives one by one, are gathered in a turn.
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

  /** For `net.connect` and `tls.connect`, which then emit no 'data' themselves. */
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

  /** To be called with the socket that was connected with `options`, before it reads. */
  attach(socket: Socket): void {
    this.#socket = socket;
    buffers.set(socket, this.#buffer);
    if (!this.#gathers) return;
    // What came before an end or a reset is delivered before it.
    socket.prependListener("end", this.#deliver);
    socket.prependListener("error", this.#deliver);
  }

  readonly #turnOver = (): void => {
    this.#isScheduled = false;
    if (this.#socket?.destroyed === false) this.#deliver();
  };

  readonly #deliver = (): void => {
    if (this.#buffer.isEmpty) return;
    try {
      this.#buffer.give(this.#pass);
    } catch (error) {
      // Node would read into the same memory next, and the chunk may be in a queue already.
      this.#socket?.destroy();
      throw error;
    }
  };

  readonly #pass = (chunk: Uint8Array): void => {
    const socket = this.#socket;
    if (socket === undefined) return;
    // One read of an encrypted connection may hold several records: they come even where there is no listener yet.
    if (socket.listenerCount("data") === 0 || socket.readableLength > 0) {
      socket.push(Buffer.from(chunk));
      return;
    }
    this.#buffer.hold();
    socket.emit("data", chunk);
  };
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
