import { MAX_CHUNK_BYTES } from "./limits.ts";

/** Calls `send` with consecutive views of at most MAX_CHUNK_BYTES. */
export function sendInChunks(bytes: Uint8Array, send: (chunk: Uint8Array) => void): void {
  for (let offset = 0; offset < bytes.length; offset += MAX_CHUNK_BYTES) {
    send(bytes.subarray(offset, offset + MAX_CHUNK_BYTES));
  }
}
