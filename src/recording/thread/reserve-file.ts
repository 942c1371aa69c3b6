import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import type { Reserve } from "./recording-service.ts";

/** Enough for the last lines of about a thousand recordings. */
export const RESERVE_BYTES: number = 1024 * 1024;

/** A file that reserves space on the disk while there is enough. */
export class ReserveFile implements Reserve {
  readonly #file: string;
  #isTaken = false;

  constructor(file: string) {
    this.#file = file;
    this.renew();
  }

  release(): void {
    this.#isTaken = false;
    try {
      rmSync(this.#file, { force: true });
    } catch {
      // If the folder became read-only the space stays reserved, and the next write reports the error.
    }
  }

  renew(): void {
    if (this.#isTaken) return;
    try {
      const handle = openSync(this.#file, "w", 0o600);
      try {
        // Not zeros, which some file systems store as a hole.
        for (let written = 0; written < RESERVE_BYTES; )
          written += writeSync(handle, FILLING, 0, Math.min(FILLING.byteLength, RESERVE_BYTES - written));
        this.#isTaken = true;
      } finally {
        closeSync(handle);
      }
    } catch {
      this.release();
    }
  }
}

const FILLING = Buffer.alloc(64 * 1024, "sluice");
