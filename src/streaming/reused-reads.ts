import type { OnReadOpts, Socket } from "node:net";
import type { Duplex } from "node:stream";

const BULK_BYTES = 64 * 1024;
/** What an idle session holds: a prompt's worth. */
const QUIET_BYTES = 4 * 1024;
/** So many small reads in a row end a bulk transfer. */
const QUIET_READS = 32;

/** The memory that one socket reads into. */
class ReadBuffer {
  memory = Buffer.allocUnsafeSlow(QUIET_BYTES);
  /** Nobody looks at what was read last: it may be overwritten. */
  isFree = true;
  #smallReads = 0;

  /** The memory for the next read, after one that brought `bytesRead`. */
  prepare(bytesRead: number): Buffer {
    const size = this.#nextSize(bytesRead);
    if (!this.isFree || size !== this.memory.byteLength) this.memory = Buffer.allocUnsafeSlow(size);
    return this.memory;
  }

  #nextSize(bytesRead: number): number {
    if (bytesRead > QUIET_BYTES / 2) {
      this.#smallReads = 0;
      return BULK_BYTES;
    }
    this.#smallReads += 1;
    return this.#smallReads >= QUIET_READS ? QUIET_BYTES : this.memory.byteLength;
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
  readonly #buffer = new ReadBuffer();
  #socket: Socket | undefined;
  #bytesRead = 0;

  /** For `net.connect` and `tls.connect`, which then emit no 'data' themselves. */
  readonly options: OnReadOpts = {
    buffer: () => this.#buffer.prepare(this.#bytesRead),
    callback: (bytesRead, memory) => {
      this.#bytesRead = bytesRead;
      this.#buffer.isFree = false;
      this.#socket?.emit("data", memory.subarray(0, bytesRead));
      return true;
    },
  };

  /** To be called with the socket that was connected with `options`, before it reads. */
  attach(socket: Socket): void {
    this.#socket = socket;
    buffers.set(socket, this.#buffer);
  }
}

/** Says, within a socket's 'data' event, that nobody will look at the chunk any more when the event returns. */
export function releaseChunk(socket: Duplex): void {
  const buffer = buffers.get(socket);
  if (buffer !== undefined) buffer.isFree = true;
}
