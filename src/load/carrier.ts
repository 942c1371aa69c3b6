import type { Readable, Writable } from "node:stream";

/**
 * One session: carries `input` there and what comes back into `output`, to the end of both. Absent: nothing is sent.
 * Throws ConnectError, SessionError or LoadError.
 */
export type Carrier = (input: Readable | undefined, output: Writable, signal: AbortSignal) => Promise<void>;
