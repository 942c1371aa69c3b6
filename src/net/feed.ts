// src/net: feeding one socket from another, listening, addresses that may be dialled, fair shares,
// certificates that are followed
import type { Duplex } from "node:stream";
import { gatherWrites } from "@sluice/client/internal/net/gathered-writes";
import { recycleChunks } from "@sluice/client/internal/net/reused-reads";
import type { Pace } from "./bandwidth.ts";
import type { ReadAhead } from "./read-ahead.ts";

/**
 * This many small chunks in this time, about 25 each millisecond, are a burst. Request-response
 * traffic has about 5.
 */
const BURST_CHUNKS = 64;
const BURST_MS = 2.5;
const SMALL_CHUNK_BYTES = 1024;
/**
 * A rest that collected fewer chunks was useless, because the peer waits for answers. The next one
 * comes later.
 */
const WORTHWHILE_CHUNKS = 24;
const DISCOURAGED_MS = 100;
/**
 * Turns of the event loop in which a source is read after a rest. Each enlarges the memory for
 * reads.
 */
const MAX_TURNS = 4;
/** A rest that collects more than this was bulk data, which arrives in large chunks anyway. */
const BULK_BYTES = 128 * 1024;

/** How long a source rests, in milliseconds. */
const REST_MS = 1;

/**
 * Pauses a source of many small chunks for REST_MS, so that one read then brings a hundred of them,
 * like Linux' NAPI. Terminals and request-response traffic stay below the rate.
 */
export class ReadModeration {
  readonly #nowMs: () => number;
  #chunks = 0;
  #turns = 0;
  #bytes = 0;
  #burstStartMs = 0;
  #worthwhileBytes = 0;
  #discouragedUntilMs = 0;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Counts a chunk. Returns true if the source should rest now. */
  startsRest(chunkBytes: number): boolean {
    this.#chunks += 1;
    this.#bytes += chunkBytes;
    if (this.#chunks < BURST_CHUNKS || this.#worthwhileBytes > 0) return false;
    const nowMs = this.#nowMs();
    const meanBytes = this.#bytes / BURST_CHUNKS;
    const isBurst = nowMs - this.#burstStartMs < BURST_MS && meanBytes < SMALL_CHUNK_BYTES;
    this.#chunks = this.#bytes = 0;
    this.#burstStartMs = nowMs;
    if (!isBurst || nowMs < this.#discouragedUntilMs) return false;
    this.#worthwhileBytes = meanBytes * WORTHWHILE_CHUNKS;
    return true;
  }

  /** Call at the end of each turn after a rest, until it returns something other than "later". */
  afterTurn(): "rest" | "later" | "over" {
    this.#turns += 1;
    const isBulk = this.#bytes >= BULK_BYTES;
    const isWorthwhile = this.#bytes >= this.#worthwhileBytes;
    if (!isWorthwhile && this.#turns < MAX_TURNS) return "later";
    this.#chunks = this.#bytes = this.#turns = 0;
    if (isWorthwhile && !isBulk) return "rest";
    this.#worthwhileBytes = 0;
    if (!isBulk) this.#discouragedUntilMs = this.#nowMs() + DISCOURAGED_MS;
    return "over";
  }
}

/**
 * After this many bytes a source yields to the event loop. libuv alone would read 2 MiB from one
 * source before the next.
 */
const TURN_BYTES = 512 * 1024;
/**
 * One yielded source resumes in each turn. If all did, each would find its memory out of the
 * processor's cache, and small messages would wait for all of them.
 */
const yielded: (() => void)[] = [];

function resumeInTurn(resume: () => void): void {
  if (yielded.push(resume) === 1) setImmediate(resumeNext);
}

function resumeNext(): void {
  const resume = yielded.shift();
  if (yielded.length > 0) setImmediate(resumeNext);
  resume?.();
}

/**
 * Passes each chunk of `source` to `receive`, which writes only to `sink` and keeps no view. A full
 * sink pauses the source, unless reading ahead; its pace delays or holds it; bursts are read together.
 */
export function feed(
  source: Duplex,
  sink: Duplex,
  receive: (chunk: Uint8Array) => void,
  pace?: Pace | undefined,
  ahead?: ReadAhead | undefined,
): Feed {
  return new Feed(source, sink, receive, pace, ahead);
}

/** A source that is being read. */
export class Feed {
  readonly #source: Duplex;
  readonly #sink: Duplex;
  readonly #receive: (chunk: Uint8Array) => void;
  readonly #pace: Pace | undefined;
  readonly #ahead: ReadAhead | undefined;
  readonly #moderation = new ReadModeration();
  #isHeld = false;
  #isPaced = false;
  #isYielding = false;
  #isResting = false;
  #bytesOfTurn = 0;

  constructor(
    source: Duplex,
    sink: Duplex,
    receive: (chunk: Uint8Array) => void,
    pace: Pace | undefined,
    ahead: ReadAhead | undefined,
  ) {
    this.#source = source;
    this.#sink = sink;
    this.#receive = receive;
    this.#pace = pace;
    this.#ahead = ahead;
    gatherWrites(sink);
    source.on("data", (chunk: Uint8Array) => this.#take(chunk));
    sink.on("drain", () => {
      if (hasTakenAll(sink)) recycleChunks(source);
      ahead?.emptied();
      this.#resume();
    });
    pace?.onHold(() => {
      if (pace.isHeld) source.pause();
      else this.#resume();
    });
    if (ahead !== undefined) {
      ahead.onWanted(() => this.#resume());
      sink.once("close", () => ahead.emptied());
    }
    // An upgraded socket arrives paused, and adding a listener does not resume it.
    if (pace?.isHeld === true) source.pause();
    else source.resume();
  }

  /** Reads nothing until `release`. */
  hold(): void {
    this.#isHeld = true;
    this.#source.pause();
  }

  release(): void {
    this.#isHeld = false;
    this.#resume();
  }

  #take(chunk: Uint8Array): void {
    const sink = this.#sink;
    sink.cork();
    try {
      this.#receive(chunk);
    } finally {
      sink.uncork();
    }
    // Usually the kernel has taken everything by now, so the memory is free and no wait is needed.
    if (hasTakenAll(sink)) recycleChunks(this.#source);
    else if (sink.writableNeedDrain) {
      this.#ahead?.filled(chunk.byteLength);
      if (this.#ahead?.mayRead !== true) this.#source.pause();
    }
    this.#bytesOfTurn += chunk.byteLength;
    if (this.#bytesOfTurn >= TURN_BYTES) this.#yield();
    if (this.#moderation.startsRest(chunk.byteLength)) this.#rest();
    const waitMs = this.#pace === undefined ? 0 : this.#pace.spend(chunk.byteLength);
    if (waitMs === 0 || this.#isPaced) return;
    this.#isPaced = true;
    this.#source.pause();
    this.#pace?.wakeIn(waitMs, () => {
      this.#isPaced = false;
      this.#resume();
    });
  }

  /** Lets other sources have their turn. */
  #yield(): void {
    this.#bytesOfTurn = 0;
    this.#source.pause();
    if (this.#isYielding) return;
    this.#isYielding = true;
    resumeInTurn(() => {
      this.#isYielding = false;
      this.#resume();
    });
  }

  #rest(): void {
    this.#isResting = true;
    this.#source.pause();
    setTimeout(() => {
      this.#isResting = false;
      this.#resume();
      setImmediate(this.#endTurnAfterRest);
    }, REST_MS);
  }

  readonly #endTurnAfterRest = (): void => {
    const next = this.#moderation.afterTurn();
    if (next === "rest") this.#rest();
    else if (next === "later") setImmediate(this.#endTurnAfterRest);
  };

  #resume(): void {
    const isFull = this.#sink.writableNeedDrain && this.#ahead?.mayRead !== true;
    const isWaiting = this.#isHeld || this.#isPaced || this.#isYielding || this.#isResting;
    if (!isWaiting && !isFull && this.#pace?.isHeld !== true) this.#source.resume();
  }
}

/**
 * A destroyed sink's queue is empty too, but parts of it may still be in use: HTTP/2 sends a stream's
 * bytes with those of others.
 */
function hasTakenAll(sink: Duplex): boolean {
  return sink.writableLength === 0 && !sink.destroyed;
}
