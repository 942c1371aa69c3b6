import type { Feed } from "../../net/feed.ts";
import { READ_AHEAD_BYTES, type ReadAhead } from "../../net/read-ahead.ts";

/** A node that was read and sent nothing for so long has nothing queued: systems send again, after 200 ms, what found no room. */
export const DRAINED_MS = 250;
/** Input waits no longer for what a node has queued. */
export const MAX_INPUT_HOLD_MS = 1_000;
/** The same in a terminal, whose user waits for the answer to a key. */
export const MAX_TERMINAL_HOLD_MS = 200;
/** So much output behind the client's last input is no answer to it: the command may have ended behind more. */
export const BULK_OUTPUT_BYTES: number = 512 * 1024;

/** A larger piece of input belongs to a stream of it, which is not held, nor what follows within this time. */
export const MAX_HELD_PIECE_BYTES: number = 8 * 1024;
const STREAM_MS = 5_000;
/** Turns of the event loop in which nothing came: a source pauses for one after each 256 KiB. */
const QUIET_TURNS = 3;

interface Held {
  readonly send: (bytes: Uint8Array) => void;
  readonly bytes: Uint8Array;
}

/**
 * Holds input that comes behind much output until what the node has queued was read. With the status
 * in it, the node's socket is closed, and input would take output back (kubernetes#142376).
 */
export class InputHold {
  readonly #ahead: ReadAhead;
  readonly #client: Feed;
  readonly #hasResult: () => boolean;
  readonly #maxHoldMs: number;
  #held: Held[] = [];
  /** Of output since input went on, or since it is held. */
  #outputBytes = 0;
  #heardMs = 0;
  #quietTurns = 0;
  #streamedMs = Number.NEGATIVE_INFINITY;
  #sinceMs = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `client`: what reads the input. `hasResult`: the node has said how its command ended. */
  constructor(ahead: ReadAhead, client: Feed, isTerminal: boolean, hasResult: () => boolean) {
    this.#ahead = ahead;
    this.#client = client;
    this.#hasResult = hasResult;
    this.#maxHoldMs = isTerminal ? MAX_TERMINAL_HOLD_MS : MAX_INPUT_HOLD_MS;
  }

  /** Calls `send` now, or later with a copy, or never, where the command has ended. In the order of the calls. */
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

  /** So much was read from the node, and is written to the client. */
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

  /** What is held goes on. */
  flush(): void {
    this.#end();
    for (const { send, bytes } of this.#held.splice(0)) send(bytes);
  }

  /** What is held means nothing any more. */
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
      // A process that was busy has not read what came meanwhile.
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
