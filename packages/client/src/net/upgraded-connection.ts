import type { Duplex } from "node:stream";

/** An upgraded connection: its socket, and the bytes that were read beyond the upgrade. */
export interface UpgradedConnection {
  readonly socket: Duplex;
  readonly head: Uint8Array;
}
