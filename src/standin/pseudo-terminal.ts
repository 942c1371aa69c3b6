import { createRequire } from "node:module";
import { ReadStream } from "node:tty";

interface NativePty {
  open(columns: number, rows: number): { master: number; slave: number; pty: string };
  resize(master: number, columns: number, rows: number): void;
}

/** A terminal's two ends. The slave's descriptor is the caller's to close, once a process has it. */
export interface PseudoTerminal {
  readonly master: ReadStream;
  readonly slaveDescriptor: number;
  /** E.g. /dev/pts/3. */
  readonly slavePath: string;
  resize(columns: number, rows: number): void;
}

let native: NativePty | undefined;

/**
 * Opens a terminal with node-pty's native part. Its own `spawn` destroys the terminal 200 ms after the process ended,
 * and with it the output that a slow client has not taken yet; it also hides the backpressure of writes.
 */
export function openPseudoTerminal(columns: number, rows: number): PseudoTerminal {
  // Loaded only when somebody wants a terminal: the binary does not exist for every platform.
  native ??= createRequire(import.meta.url)("@lydell/node-pty/requireBinary.js").requireBinary(
    "pty.node",
  ) as NativePty;
  const { resize } = native;
  const { master, slave, pty } = native.open(columns, rows);
  // While it is paused at most one chunk waits in the stream: the end (EIO) comes only after all output was taken.
  const options: object = { highWaterMark: 1 };
  const stream = new ReadStream(master, options);
  return {
    master: stream,
    slaveDescriptor: slave,
    slavePath: pty,
    resize: (newColumns, newRows) => {
      if (!stream.destroyed) resize(master, newColumns, newRows);
    },
  };
}
