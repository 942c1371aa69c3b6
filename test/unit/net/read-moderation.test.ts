import { describe, expect, it } from "vitest";
import { ReadModeration } from "../../../src/net/feed.ts";

const BURST = 64;

/** Chunks of `bytes`, `everyMs`, until one starts a rest; how many it took, or undefined. */
function chunksToRest(moderation: ReadModeration, clock: { ms: number }, bytes: number, everyMs: number) {
  for (let chunk = 1; chunk <= 20 * BURST; chunk += 1) {
    clock.ms += everyMs;
    if (moderation.startsRest(bytes)) return chunk;
  }
  return undefined;
}

function start() {
  const clock = { ms: 1_000_000 };
  return { clock, moderation: new ReadModeration(() => clock.ms) };
}

/** What the turns after a rest bring, until it is said what is next. */
function turns(moderation: ReadModeration, chunks: number[]) {
  const said: string[] = [];
  for (const bytes of chunks) {
    if (bytes > 0) expect(moderation.startsRest(bytes)).toBe(false);
    said.push(moderation.afterTurn());
  }
  return said;
}

describe("ReadModeration", () => {
  it("lets a source rest after a burst of small chunks", () => {
    const { clock, moderation } = start();
    // The first chunks only start the clock.
    expect(chunksToRest(moderation, clock, 72, 0.02)).toBe(2 * BURST);
  });

  it.each([
    ["a terminal", 80, 30],
    ["requests that wait for answers", 200, 0.2],
    ["bulk", 32 * 1024, 0.03],
  ])("never for %s", (_what, bytes, everyMs) => {
    const { clock, moderation } = start();
    expect(chunksToRest(moderation, clock, bytes, everyMs)).toBeUndefined();
  });

  it("rests on while each rest gathers much", () => {
    const { clock, moderation } = start();
    chunksToRest(moderation, clock, 72, 0.02);
    expect(turns(moderation, [300, 1024, 8192])).toEqual(["later", "later", "rest"]);
    expect(turns(moderation, [5000])).toEqual(["rest"]);
  });

  it("is over where a rest gathers little, and is not tried again for a while: others would wait for answers", () => {
    const { clock, moderation } = start();
    chunksToRest(moderation, clock, 72, 0.02);
    expect(turns(moderation, [72 * 8, 0, 0, 0])).toEqual(["later", "later", "later", "over"]);
    const restedAtMs = clock.ms;
    expect(chunksToRest(moderation, clock, 72, 0.02)).toBe(undefined);
    expect(clock.ms - restedAtMs).toBeLessThan(100);
    clock.ms += 100;
    expect(chunksToRest(moderation, clock, 72, 0.02)).toBeGreaterThan(0);
  });

  it("is over where a rest brings bulk, and may start again at once", () => {
    const { clock, moderation } = start();
    chunksToRest(moderation, clock, 72, 0.02);
    expect(turns(moderation, [128 * 1024])).toEqual(["over"]);
    expect(chunksToRest(moderation, clock, 72, 0.02)).toBe(BURST);
  });
});
