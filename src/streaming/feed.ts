import type { Duplex } from "node:stream";
import { releaseChunk } from "./reused-reads.ts";

/**
 * Couples two sockets in one direction: every chunk read from `source` goes to `receive`, which writes what it makes
 * of it to `sink`.
 *
 * `receive` must keep no view of the chunk beyond what it writes to the sink. All that one chunk causes leaves in one writev (cork), and a sink that is full pauses the source: bytes move no
 * faster than the slower side, and at most one chunk beyond the sink's high-water mark is held here.
 */
export function feed(source: Duplex, sink: Duplex, receive: (chunk: Uint8Array) => void): void {
  source.on("data", (chunk: Uint8Array) => {
    sink.cork();
    try {
      receive(chunk);
    } finally {
      sink.uncork();
    }
    // Mostly the kernel has taken all of it by now: the memory is free, and there is nothing to wait for.
    if (sink.writableLength === 0) releaseChunk(source);
    else if (sink.writableNeedDrain) source.pause();
  });
  sink.on("drain", () => source.resume());
  // An upgraded socket is handed over paused, and a listener alone does not wake a socket that was paused.
  source.resume();
}
