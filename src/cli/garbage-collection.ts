import { setFlagsFromString } from "node:v8";

/**
 * Keeps V8 from marking the whole heap because of buffers. Every chunk read from a client is an ArrayBuffer; V8 counts them and,
 * once the heap is larger than 8 MiB, starts a full collection for each 32 MiB or so that passes through, although they die
 * young and a scavenge frees them. Without incremental marking it scavenges instead. Full collections still happen when the
 * heap itself grows; they are then done in one go.
 */
export function tuneGarbageCollection(): void {
  setFlagsFromString("--no-incremental-marking");
}
