// src/net: feeding one socket from another, listening, addresses that may be dialled, fair shares,
// certificates that are followed

import type { Duplex } from "node:stream";
import { gatherWrites } from "@sluice/client/internal/net/gathered-writes";
import { recycleChunks } from "@sluice/client/internal/net/reused-reads";
import type { Pace } from "./bandwidth.ts";
import type { ReadAhead } from "./read-ahead.ts";
import { REST_MS, ReadModeration } from "./read-moderation.ts";

/**
 * After this many bytes a source yields to the event loop. libuv alone would read 2 MiB from one
 * source before the next.
 */
const TURN_BYTES = 256 * 1024;

/** A source that is being read. */
export interface Feed {
  /** Reads nothing until `release`. */
  hold(): void;
  release(): void;
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
  gatherWrites(sink);
  let isHeld = false;
  let isPaced = false;
  let isYielding = false;
  let isResting = false;
  let bytesOfTurn = 0;
  const moderation = new ReadModeration();
  const resume = (): void => {
    const isFull = sink.writableNeedDrain && ahead?.mayRead !== true;
    if (!isHeld && !isPaced && !isYielding && !isResting && !isFull && pace?.isHeld !== true) source.resume();
  };
  const wake = (): void => {
    isPaced = false;
    resume();
  };
  const takeTurn = (): void => {
    isYielding = false;
    resume();
  };
  const rest = (): void => {
    isResting = true;
    source.pause();
    setTimeout(endRest, REST_MS);
  };
  const endRest = (): void => {
    isResting = false;
    resume();
    setImmediate(endTurnAfterRest);
  };
  const endTurnAfterRest = (): void => {
    const next = moderation.afterTurn();
    if (next === "rest") rest();
    else if (next === "later") setImmediate(endTurnAfterRest);
  };
  source.on("data", (chunk: Uint8Array) => {
    sink.cork();
    try {
      receive(chunk);
    } finally {
      sink.uncork();
    }
    // Usually the kernel has taken everything by now, so the memory is free and no wait is needed.
    if (hasTakenAll(sink)) recycleChunks(source);
    else if (sink.writableNeedDrain) {
      ahead?.filled(chunk.byteLength);
      if (ahead?.mayRead !== true) source.pause();
    }
    bytesOfTurn += chunk.byteLength;
    if (bytesOfTurn >= TURN_BYTES) {
      bytesOfTurn = 0;
      source.pause();
      if (!isYielding) setImmediate(takeTurn);
      isYielding = true;
    }
    if (moderation.startsRest(chunk.byteLength)) rest();
    const waitMs = pace === undefined ? 0 : pace.spend(chunk.byteLength);
    if (waitMs === 0 || isPaced) return;
    isPaced = true;
    source.pause();
    pace?.wakeIn(waitMs, wake);
  });
  sink.on("drain", () => {
    if (hasTakenAll(sink)) recycleChunks(source);
    ahead?.emptied();
    resume();
  });
  pace?.onHold(() => {
    if (pace.isHeld) source.pause();
    else resume();
  });
  if (ahead !== undefined) {
    ahead.onWanted(resume);
    sink.once("close", () => ahead.emptied());
  }
  // An upgraded socket arrives paused, and adding a listener does not resume it.
  if (pace?.isHeld === true) source.pause();
  else source.resume();
  return {
    hold: () => {
      isHeld = true;
      source.pause();
    },
    release: () => {
      isHeld = false;
      resume();
    },
  };
}

/**
 * A destroyed sink's queue is empty too, but parts of it may still be in use: HTTP/2 sends a stream's
 * bytes with those of others.
 */
function hasTakenAll(sink: Duplex): boolean {
  return sink.writableLength === 0 && !sink.destroyed;
}
