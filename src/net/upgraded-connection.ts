import type { Duplex } from "node:stream";

/** A connection whose upgrade is done: its socket, and what had been read from it beyond the upgrade. */
export interface UpgradedConnection {
  readonly socket: Duplex;
  readonly head: Uint8Array;
}
