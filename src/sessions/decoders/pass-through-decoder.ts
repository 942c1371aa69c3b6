import type { SessionEnd } from "../carriers/session-end.ts";

/**
 * Decodes what passes through a relay, for observers, and keeps no view of it. It looks at payload
 * only where an observer is shown it, and cuts frames only in `spdy-command-decoder.ts`.
 */
export interface PassThroughDecoder {
  /** To be called before the chunk is passed on. An end refuses it. */
  fromClient(chunk: Uint8Array): SessionEnd | undefined;
  /** Passes the chunk on, in pieces, behind what it tells observers. An end refuses it. */
  fromNode(chunk: Uint8Array, pass: (bytes: Uint8Array) => void): SessionEnd | undefined;
  /** The bytes that report a failure to the client where the node reported nothing; undefined where it cannot be reported. */
  failureFrame?(message: string): Uint8Array | undefined;
}
