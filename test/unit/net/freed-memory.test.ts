import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Memory, SpareMemories } from "../../../packages/client/src/net/freed-memory.ts";

// The bounds under test.
const SPARE_MS = 10_000;
const MAX_SPARE_MEMORIES = 1_024;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Gives back `count` new memories, and returns them. */
function given(spare: SpareMemories, count: number): Memory[] {
  const memories = Array.from({ length: count }, () => spare.take());
  for (const memory of memories) spare.give(memory);
  return memories;
}

describe("spare memories", () => {
  it("are taken again, the last one first", () => {
    const spare = new SpareMemories(64);
    const [first, second] = given(spare, 2);
    expect(spare.take()).toBe(second);
    expect(spare.take()).toBe(first);
    expect(spare.take().byteLength).toBe(64);
  });

  it("are kept up to a bound", () => {
    const spare = new SpareMemories(1);
    const memories = new Set(given(spare, MAX_SPARE_MEMORIES + 3));
    const again = Array.from({ length: MAX_SPARE_MEMORIES + 3 }, () => spare.take());
    expect(again.filter((memory) => memories.has(memory))).toHaveLength(MAX_SPARE_MEMORIES);
  });

  it("are dropped if nobody took them for a while, but not those in use", () => {
    const spare = new SpareMemories(1);
    const memories = new Set(given(spare, 10));
    const take = (count: number): Memory[] => Array.from({ length: count }, () => spare.take());
    vi.advanceTimersByTime(SPARE_MS);
    for (const memory of take(4)) spare.give(memory);
    vi.advanceTimersByTime(SPARE_MS);
    expect(take(10).filter((memory) => memories.has(memory))).toHaveLength(4);
    vi.advanceTimersByTime(2 * SPARE_MS);
    expect(vi.getTimerCount()).toBe(0);
  });
});
