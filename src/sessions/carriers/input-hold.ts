import type { Duplex } from "node:stream";
import type { SpdyStream } from "@sluice/protocols/spdy";
import type { Feed } from "../../net/feed.ts";
import { READ_AHEAD_BYTES, type ReadAhead } from "../../net/read-ahead.ts";
import { MAX_PENDING_INPUT } from "../session.ts";

/**
 * If a node sends nothing for this long while it is read, nothing is queued: kernels retry a full
 * receiver within 200 ms.
 */
const DRAINED_MS = 250;
/**
 * How long input waits for the output in a node's queue. Past it the input continues, or is dropped
 * if the command has ended.
 */
const MAX_INPUT_HOLD_MS = 1_000;
/**
 * How long input waits in a terminal, where a user waits for the echo of each key. Past it the
 * input continues.
 */
const MAX_TERMINAL_HOLD_MS = 200;
/**
 * Output since the client's last input that may be a reply to it. Past it input waits: the status
 * may be queued behind the output.
 */
const BULK_OUTPUT_BYTES = 512 * 1024;

/**
 * The largest piece of input that is held. Past it the piece belongs to a bulk transfer: it is not
 * held, nor is any input within STREAM_MS after it.
 */
const MAX_HELD_PIECE_BYTES = 8 * 1024;
const STREAM_MS = 5_000;
/**
 * Turns of the event loop without output before the queue counts as empty: a source pauses for one
 * after each 256 KiB.
 */
const QUIET_TURNS = 3;

interface Held {
  readonly send: (bytes: Uint8Array) => void;
  readonly bytes: Uint8Array;
}

/**
 * Holds input that follows much output until the node's queue has been read. If the status is in that
 * queue, the node has closed its socket, and new input would discard the output
 * (kubernetes/kubernetes#142376).
 */
export class InputHold {
  readonly #ahead: ReadAhead;
  readonly #client: Pick<Feed, "hold" | "release">;
  readonly #hasResult: () => boolean;
  readonly #maxHoldMs: number;
  #held: Held[] = [];
  /** Output bytes since the last input was passed, or since the hold began. */
  #outputBytes = 0;
  #heardMs = 0;
  #quietTurns = 0;
  #streamedMs = Number.NEGATIVE_INFINITY;
  #sinceMs = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * `client`: the feed that reads the input. `hasResult`: whether the node has reported the command's
   * result.
   */
  constructor(
    ahead: ReadAhead,
    client: Pick<Feed, "hold" | "release">,
    isTerminal: boolean,
    hasResult: () => boolean,
  ) {
    this.#ahead = ahead;
    this.#client = client;
    this.#hasResult = hasResult;
    this.#maxHoldMs = isTerminal ? MAX_TERMINAL_HOLD_MS : MAX_INPUT_HOLD_MS;
  }

  /** Calls `send` now, or later with a copy, in call order. Does not call it if the command ends first. */
  pass(send: (bytes: Uint8Array) => void, bytes: Uint8Array): void {
    if (bytes.byteLength > MAX_HELD_PIECE_BYTES) {
      this.#streamedMs = performance.now();
      this.flush();
    }
    if (this.#timer === undefined) {
      if (!this.#mustHold()) {
        this.#outputBytes = 0;
        send(bytes);
        return;
      }
      this.#begin();
    }
    this.#held.push({ send, bytes: Uint8Array.from(bytes) });
  }

  /**
   * False while a joiner's input has to wait: input is held, or `node` has too much input queued.
   */
  takes(bytes: Uint8Array, node: Duplex): boolean {
    return this.#timer === undefined && node.writableLength + bytes.byteLength <= MAX_PENDING_INPUT;
  }

  /** Counts bytes that were read from the node and written to the client. */
  heard(bytes: number): void {
    this.#outputBytes += bytes;
    if (this.#timer === undefined) {
      if (this.#isRisky) this.#heardMs = performance.now();
      return;
    }
    this.#heardMs = performance.now();
    if (this.#hasResult()) this.drop();
    else if (this.#outputBytes >= READ_AHEAD_BYTES || this.#ahead.isExhausted) this.flush();
  }

  /** Sends the held input. */
  flush(): void {
    this.#end();
    for (const { send, bytes } of this.#held.splice(0)) send(bytes);
  }

  /** Discards the held input. */
  drop(): void {
    this.#held = [];
    this.#end();
  }

  get #isRisky(): boolean {
    return this.#outputBytes >= BULK_OUTPUT_BYTES || this.#ahead.isBehind;
  }

  #mustHold(): boolean {
    if (!this.#isRisky || this.#ahead.isExhausted || this.#hasResult()) return false;
    const nowMs = performance.now();
    if (nowMs - this.#streamedMs < STREAM_MS) return false;
    if (this.#ahead.isFull || nowMs - this.#heardMs < DRAINED_MS) return true;
    this.#ahead.drained();
    return false;
  }

  #begin(): void {
    this.#sinceMs = performance.now();
    if (this.#ahead.isFull) this.#heardMs = this.#sinceMs;
    this.#outputBytes = 0;
    this.#client.hold();
    this.#timer = setTimeout(this.#look, Math.min(DRAINED_MS, this.#maxHoldMs));
    this.#ahead.start();
  }

  readonly #look = (): void => {
    if (this.#timer === undefined) return;
    const nowMs = performance.now();
    const quietMs = nowMs - this.#heardMs;
    if (nowMs - this.#sinceMs >= this.#maxHoldMs) {
      this.flush();
    } else if (quietMs < DRAINED_MS) {
      this.#quietTurns = 0;
      this.#timer = setTimeout(this.#look, DRAINED_MS - quietMs);
    } else if (this.#quietTurns < QUIET_TURNS) {
      // If the process was busy, output may have arrived that it has not read yet.
      this.#quietTurns += 1;
      setImmediate(this.#look);
    } else {
      this.#ahead.drained();
      this.flush();
    }
  };

  #end(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#outputBytes = this.#quietTurns = 0;
    this.#ahead.stop();
    this.#client.release();
  }
}

/**
 * The streams on which a SPDY node reads a command's input. Writes nothing after the command's
 * result.
 */
export class SpdyInput {
  stdin: SpdyStream | undefined;
  /** Absent without a terminal. */
  resize: SpdyStream | undefined;
  readonly #hasResult: () => boolean;

  constructor(hasResult: () => boolean) {
    this.#hasResult = hasResult;
  }

  /** True if stdin was requested and has not ended, and the command has no result yet. */
  get readsStdin(): boolean {
    return !this.#hasResult() && this.stdin?.isWritable === true;
  }

  readonly writeStdin = (part: Uint8Array): void => this.#running(this.stdin)?.write(part);
  readonly writeResize = (part: Uint8Array): void => this.#running(this.resize)?.write(part);
  readonly finishStdin = (): void => this.#running(this.stdin)?.finish();
  readonly finishResize = (): void => this.#running(this.resize)?.finish();

  #running(stream: SpdyStream | undefined): SpdyStream | undefined {
    return this.#hasResult() ? undefined : stream;
  }
}
