import type { StdioNull, StdioPipe } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { createRequire } from "node:module";
import { ReadStream } from "node:tty";
import { notInstalled } from "@sluice/client/internal/config/optional-package";

interface NativePty {
  open(columns: number, rows: number): { master: number; slave: number; pty: string };
  resize(master: number, columns: number, rows: number): void;
}

/** A terminal's two ends. The caller closes the slave's descriptor once a process has it. */
export interface PseudoTerminal {
  readonly master: ReadStream;
  readonly slaveDescriptor: number;
  /** E.g. /dev/pts/3. */
  readonly slavePath: string;
  resize(columns: number, rows: number): void;
  /** Reads the kernel's buffered output without waiting; at most MAX_AVAILABLE_BYTES. */
  readAvailable(): Generator<Uint8Array>;
}

/** Several times Linux' buffer for a terminal. */
const MAX_AVAILABLE_BYTES = 1024 * 1024;
const PIECE_BYTES = 4096;

let native: NativePty | undefined;
const openMasters = new Set<number>();

/**
 * Opens a terminal with node-pty's native part. Its `spawn` destroys the terminal 200 ms after the
 * process ends, losing output for a slow client, and hides backpressure.
 */
export function openPseudoTerminal(columns: number, rows: number): PseudoTerminal {
  // Loaded only for the first terminal: the binary does not exist for every platform.
  native ??= loadNative();
  const { resize } = native;
  const { master, slave, pty: slavePath } = native.open(columns, rows);
  openMasters.add(master);
  // While paused, at most one chunk waits in the stream.
  const options: object = { highWaterMark: 1 };
  const stream = new ReadStream(master, options);
  stream.once("close", () => openMasters.delete(master));
  // Child processes would inherit the native descriptors; one that Node opens is not inherited.
  const slaveDescriptor = openSync(slavePath, constants.O_RDWR | constants.O_NOCTTY);
  closeSync(slave);
  return {
    master: stream,
    slaveDescriptor,
    slavePath,
    resize: (newColumns, newRows) => {
      if (!stream.destroyed) resize(master, newColumns, newRows);
    },
    readAvailable: () => readAvailable(master),
  };
}

function loadNative(): NativePty {
  try {
    return createRequire(import.meta.url)("@lydell/node-pty/requireBinary.js").requireBinary(
      "pty.node",
    ) as NativePty;
  } catch (error) {
    return notInstalled("@lydell/node-pty", "a terminal")(error);
  }
}

function* readAvailable(master: number): Generator<Uint8Array> {
  for (let taken = 0; taken < MAX_AVAILABLE_BYTES; ) {
    const piece = new Uint8Array(PIECE_BYTES);
    let length: number;
    try {
      length = readSync(master, piece);
    } catch {
      // EAGAIN: no output is left. EIO: no process uses the terminal any more.
      return;
    }
    if (length === 0) return;
    taken += length;
    yield piece.subarray(0, length);
  }
}

type Stdio = (StdioNull | StdioPipe | number)[];

/**
 * Starts a process that inherits no terminal's master, which would keep the terminal alive. Node.js
 * cannot mark masters close-on-exec, so the process gets /dev/null in their places.
 */
export function spawnWithoutTerminals<Child>(stdio: Stdio, start: (stdio: Stdio) => Child): Child {
  if (openMasters.size === 0) return start(stdio);
  const nothing = openSync("/dev/null", constants.O_RDWR);
  try {
    const masked: Stdio = Array.from({ length: Math.max(...openMasters) + 1 }, () => "ignore");
    for (const master of openMasters) masked[master] = nothing;
    stdio.forEach((entry, descriptor) => {
      masked[descriptor] = entry;
    });
    return start(masked);
  } finally {
    closeSync(nothing);
  }
}
