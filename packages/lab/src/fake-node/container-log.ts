import { EventEmitter, once } from "node:events";
import {
  isBefore,
  type PodLogOptions,
  parseLogTime,
  withNineDigits,
} from "@sluice/client/internal/api/pod-log-options";
import type { OutputStream } from "./command-process.ts";

/** containerd's max_container_log_line_size: longer lines are stored in parts. */
const MAX_PART_BYTES = 16 * 1024;
/** Each entry's overhead, so that the number of empty lines is bounded, too. */
const ENTRY_BYTES = 64;
const NEWLINE = 0x0a;

interface Entry {
  readonly time: string;
  readonly stream: OutputStream;
  /** Includes the newline, except for a part of a line. */
  readonly bytes: Buffer;
}

/**
 * The output of a container's process, in lines. Beyond `maxBytes` the oldest lines are dropped, as
 * in a rotation.
 */
export class ContainerLog {
  readonly #maxBytes: number;
  readonly #entries: Entry[] = [];
  readonly #unfinished: Record<OutputStream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  readonly #changes = new EventEmitter().setMaxListeners(0);
  /** Dropped entries, and thus the number of the first kept one. */
  #dropped = 0;
  #heldBytes = 0;
  #isOver = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  append(stream: OutputStream, part: Uint8Array): void {
    let rest = Buffer.concat([this.#unfinished[stream], part]);
    for (let end = endOfEntry(rest); end > 0; end = endOfEntry(rest)) {
      this.#add(stream, Buffer.from(rest.subarray(0, end)));
      rest = rest.subarray(end);
    }
    this.#unfinished[stream] = Buffer.from(rest);
    this.#changes.emit("change");
  }

  /** The process has ended; followed logs end, too. */
  close(): void {
    for (const stream of ["stdout", "stderr"] as const) {
      const rest = this.#unfinished[stream];
      // Like containerd, ends a last line without a newline as a whole line.
      if (rest.length > 0) this.#add(stream, Buffer.concat([rest, Buffer.of(NEWLINE)]));
      this.#unfinished[stream] = Buffer.alloc(0);
    }
    this.#isOver = true;
    this.#changes.emit("change");
  }

  /** Yields the log in parts. A reader that is slower than the process misses lines dropped meanwhile. */
  async *read(options: PodLogOptions, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { tailLines = Number.POSITIVE_INFINITY, follow, timestamps } = options;
    let remaining = options.limitBytes ?? Number.POSITIVE_INFINITY;
    let next = Math.max(0, this.#end - tailLines);
    let isAtLineStart = true;
    while (!signal.aborted) {
      next = Math.max(next, this.#dropped);
      const entry = this.#entries[next - this.#dropped];
      if (entry === undefined) {
        if (!follow || this.#isOver) return;
        await once(this.#changes, "change", { signal }).catch(() => {});
        continue;
      }
      next += 1;
      if (!isWanted(entry, options)) continue;
      const head = timestamps && isAtLineStart ? `${withNineDigits(entry.time)} ` : "";
      isAtLineStart = entry.bytes.at(-1) === NEWLINE;
      const whole = Buffer.concat([Buffer.from(head), entry.bytes]);
      yield whole.subarray(0, remaining);
      remaining -= whole.length;
      if (remaining <= 0) return;
    }
  }

  get #end(): number {
    return this.#dropped + this.#entries.length;
  }

  #add(stream: OutputStream, bytes: Buffer): void {
    this.#entries.push({ time: new Date().toISOString(), stream, bytes });
    this.#heldBytes += bytes.length + ENTRY_BYTES;
    while (this.#heldBytes > this.#maxBytes) {
      this.#heldBytes -= (this.#entries.shift()?.bytes.length ?? 0) + ENTRY_BYTES;
      this.#dropped += 1;
    }
  }
}

/** 0 if the bytes contain neither a whole line nor a part of full length. */
function endOfEntry(bytes: Buffer): number {
  const end = bytes.subarray(0, MAX_PART_BYTES).indexOf(NEWLINE) + 1;
  return end === 0 && bytes.length >= MAX_PART_BYTES ? MAX_PART_BYTES : end;
}

function isWanted({ time, stream }: Entry, { since, stream: wanted }: PodLogOptions): boolean {
  if (wanted !== undefined && wanted !== stream) return false;
  const written = parseLogTime(time);
  return since === undefined || (written !== undefined && !isBefore(written, since));
}
