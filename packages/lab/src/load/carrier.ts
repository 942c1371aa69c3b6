import type { Readable, Writable } from "node:stream";

/**
 * Runs one session to its end: sends `input` (if any) and writes the received bytes to `output`.
 * Throws ConnectError, SessionError or LoadError.
 */
export type Carrier = (input: Readable | undefined, output: Writable, signal: AbortSignal) => Promise<void>;
