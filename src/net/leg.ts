import type { Duplex } from "node:stream";

/** One side of a session: a socket whose upgrade is done, and what had been read from it beyond the upgrade. */
export interface Leg {
  readonly socket: Duplex;
  readonly head: Uint8Array;
}
